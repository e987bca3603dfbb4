//===- Text.cpp - Figures and names as people read them -------------------===//

#include "runtime/core/Text.h"
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace pipewright::runtime;

std::string pipewright::runtime::durationText(double seconds) {
  const long long whole = std::llround(std::max(0.0, seconds));
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  return text;
}

std::string pipewright::runtime::secondsText(double seconds) {
  char text[64];
  if (seconds < 1)
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

std::string pipewright::runtime::groupedText(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

std::string pipewright::runtime::bytesText(double bytes) {
  const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", bytes,
                units[unit]);
  return text;
}

std::string pipewright::runtime::counted(int64_t number, const char *what) {
  return groupedText(number) + " " + what + (number == 1 ? "" : "s");
}

std::string pipewright::runtime::countedRanks(const Program &program,
                                              const char *word) {
  const std::string ranks = counted(program.mesh().pipe, word);
  return program.replicas == 1
             ? ranks
             : ranks + " x " + counted(program.replicas, "replica");
}

/// The code of the character that begins here, and its bytes; -1 and 1 where
/// there is none.
static std::pair<int32_t, size_t> characterAt(const std::string &text,
                                              size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const int first = byte(at);
  if (first < 0x80)
    return {first, 1};
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  static constexpr int32_t least[] = {0x80, 0x800, 0x10000};
  int32_t code = first & (0x3f >> more);
  for (int i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80)
      return {-1, 1};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  const bool isValid = first >= 0xc2 && first < 0xf5 &&
                       code >= least[more - 1] && code <= 0x10ffff &&
                       (code < 0xd800 || code > 0xdfff);
  return isValid ? std::pair<int32_t, size_t>{code, more + 1}
                 : std::pair<int32_t, size_t>{-1, 1};
}

/// Whether people see the character, and see no other text because of it.
static bool isShown(int32_t code) {
  static constexpr std::pair<int32_t, int32_t> hidden[] = {
      {-1, 0x1f},         {0x7f, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},
      {0x115f, 0x1160},   {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},
      {0x205f, 0x206f},   {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
      {0xfe00, 0xfe0f},   {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
      {0xe0000, 0x10ffff}};
  for (const auto &[first, last] : hidden)
    if (code >= first && code <= last)
      return false;
  return true;
}

std::string pipewright::runtime::printable(const std::string &text) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const auto [code, bytes] = characterAt(text, at);
    const bool isBreak = code == '\n' && text.compare(at + 1, 2, "  ") == 0;
    char escape[16];
    if (code < 0x80)
      std::snprintf(escape, sizeof escape, "\\x%02x",
                    static_cast<unsigned char>(text[at]));
    else
      std::snprintf(escape, sizeof escape,
                    code > 0xffff ? "\\U%08x" : "\\u%04x",
                    static_cast<unsigned>(code));
    all += isBreak || isShown(code) ? text.substr(at, bytes) : escape;
    at += bytes;
  }
  return all;
}

int64_t pipewright::runtime::parseInteger(const char *option,
                                          const std::string &text,
                                          int64_t least) {
  char *end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < least)
    fail(option, " expects a whole number of at least ", least, ", but got '",
         text, "'");
  return value;
}
