//===- JsonFile.h - JSON of files from outside -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_IO_JSONFILE_H
#define PIPEWRIGHT_RUNTIME_IO_JSONFILE_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace pipewright::runtime {

/// Throws an Error, to be read behind what the text is of, where it is no JSON
/// or nested more than 8 deep: a level takes fifty times the memory of its
/// text, and no file that we read has more than 4.
nlohmann::json parseJson(const std::string &text);

/// That of a whole file of at most `most` bytes. `what`: "manifest of a
/// checkpoint".
nlohmann::json readJson(const std::string &path, const char *what,
                        int64_t most);

/// A whole number of at least 0 that an int64_t holds. Throws an Error for any
/// other value: the JSON library would convert it.
int64_t wholeNumber(const nlohmann::json &value);

/// A checksum as a file has it: 16 hexadecimal digits.
std::string checksumText(uint64_t checksum);
/// Throws an Error where the value is none.
uint64_t readChecksum(const nlohmann::json &value);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_JSONFILE_H
