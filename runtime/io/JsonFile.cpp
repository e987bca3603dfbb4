//===- JsonFile.cpp - JSON of files from outside --------------------------===//

#include "runtime/io/JsonFile.h"
#include "runtime/core/Error.h"
#include "runtime/io/DataFile.h"

#include <cstdio>

using namespace pipewright::runtime;

nlohmann::json pipewright::runtime::parseJson(const std::string &text) {
  const auto refuseDeep = [](int depth, auto, const auto &) {
    if (depth > 8)
      fail("it has lists nested more than 8 deep");
    return true;
  };
  try {
    return nlohmann::json::parse(text, refuseDeep);
  } catch (const nlohmann::json::exception &error) {
    fail(error.what());
  }
}

nlohmann::json pipewright::runtime::readJson(const std::string &path,
                                             const char *what, int64_t most) {
  DataFile file(path);
  if (file.bytes() > most)
    fail("'", path, "' is no ", what, ": it has ", file.bytes(), " bytes");
  std::string text(file.bytes(), '\0');
  file.read(0, file.bytes(), text.data());
  try {
    return parseJson(text);
  } catch (const Error &error) {
    fail("'", path, "' is no ", what, ": ", error.what());
  }
}

void pipewright::runtime::checkFormat(const nlohmann::json &json,
                                      const char *format) {
  if (const auto found = json.at("format").get<std::string>(); found != format)
    fail("expects the format '", format, "', but got '", found.substr(0, 80),
         "'");
}

int64_t pipewright::runtime::wholeNumber(const nlohmann::json &value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) ||
      value.get<int64_t>() < 0)
    fail("expects a whole number below 2^63, but got ",
         value.is_number() ? value.dump() : value.type_name());
  return value.get<int64_t>();
}

std::string pipewright::runtime::checksumText(uint64_t checksum) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(checksum));
  return text;
}

uint64_t pipewright::runtime::readChecksum(const nlohmann::json &value) {
  const std::string text = value.get<std::string>();
  size_t used = 0;
  uint64_t number = 0;
  try {
    number = std::stoull(text, &used, 16);
  } catch (const std::exception &) {
  }
  if (used != 16 || text.size() != 16)
    fail("'", text.substr(0, 40), "' is no checksum");
  return number;
}
