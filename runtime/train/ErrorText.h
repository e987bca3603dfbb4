//===- ErrorText.h - What errors say to users ------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_ERRORTEXT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_ERRORTEXT_H

#include <cstdint>
#include <exception>
#include <string>

namespace pipewright::runtime {

/// What an exception has to say to users; the standard library's own do not.
std::string messageOf(const std::exception &error);

/// The message with the rank that failed in front, once.
std::string ranked(int64_t rank, const std::string &message);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_ERRORTEXT_H
