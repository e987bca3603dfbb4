//===- Text.h - Figures and names as people read them ----------*- C++ -*-===//
//
// And the other way round: numbers of options.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_TEXT_H
#define PIPEWRIGHT_RUNTIME_CORE_TEXT_H

#include <cstdint>
#include <string>

namespace pipewright::runtime {

struct Program;

/// "1:07:09" or "0:31".
std::string durationText(double seconds);
/// "12.3 ms" or "1.23 s".
std::string secondsText(double seconds);
/// "12,345".
std::string groupedText(int64_t number);
/// "12.3 MB": 1 MB is 1,000,000 bytes.
std::string bytesText(double bytes);
/// "1 rank", "12,345 ranks".
std::string counted(int64_t number, const char *what);
/// "2 ranks", "2 ranks x 3 replicas".
std::string countedRanks(const Program &program, const char *word = "rank");

/// The text as a terminal may get it: control characters, bytes that are no
/// UTF-8, and what is invisible or turns the direction of text stand as `\x1b`
/// or `\u202e`. A line break stays where two blanks follow it.
std::string printable(const std::string &text);

/// The number that a text is; throws an Error that names the option where it is
/// none, or less than `least`.
int64_t parseInteger(const char *option, const std::string &text,
                     int64_t least);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_TEXT_H
