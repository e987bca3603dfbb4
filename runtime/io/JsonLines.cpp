//===- JsonLines.cpp - A log of one JSON object per line ------------------===//

#include "runtime/io/JsonLines.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cmath>
#include <cstring>

using namespace pipewright::runtime;

JsonLines::JsonLines(const std::string &path) : path(path) {
  if (path.empty())
    return;
  file = std::fopen(path.c_str(), "w");
  if (!file)
    fail("cannot write '", path, "': ", strerror(errno));
}

JsonLines::~JsonLines() {
  if (file)
    std::fclose(file);
}

void JsonLines::write(const std::vector<Field> &fields) {
  if (!file)
    return;
  char separator = '{';
  for (const auto &[name, value] : fields) {
    std::fprintf(file, "%c\"%s\":", separator, name);
    // 9 digits give a float back bit for bit; JSON has no word for nan.
    if (std::isfinite(value))
      std::fprintf(file, "%.9g", value);
    else
      std::fprintf(file, "null");
    separator = ',';
  }
  std::fputs("}\n", file);
  if (std::fflush(file) != 0)
    fail("cannot write '", path, "': ", strerror(errno));
}
