//===- JsonFile.h - JSON of files from outside -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_IO_JSONFILE_H
#define PIPEWRIGHT_RUNTIME_IO_JSONFILE_H

#include "runtime/core/Error.h"

#include <cstdint>
#include <exception>
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

/// Throws an Error unless the member "format" is that.
void checkFormat(const nlohmann::json &json, const char *format);

/// What `parse` makes of the JSON of a file, whose "format" is `format`. Throws
/// an Error that names the file where it is no `what`.
template <class Parse>
auto readFormat(const std::string &path, const char *what, int64_t most,
                const char *format, const Parse &parse) {
  const nlohmann::json json = readJson(path, what, most);
  try {
    checkFormat(json, format);
    return parse(json);
  } catch (const std::exception &error) {
    fail("'", path, "' is no ", what, ": ", error.what());
  }
}

/// A whole number of at least 0 that an int64_t holds. Throws an Error for any
/// other value: the JSON library would convert it.
int64_t wholeNumber(const nlohmann::json &value);

/// A checksum as a file has it: 16 hexadecimal digits.
std::string checksumText(uint64_t checksum);
/// Throws an Error where the value is none.
uint64_t readChecksum(const nlohmann::json &value);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_JSONFILE_H
