//===- JsonLines.cpp - A log of one JSON object per line ------------------===//

#include "runtime/io/JsonLines.h"
#include "runtime/core/Error.h"
#include "runtime/io/DataFile.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <sstream>
#include <sys/stat.h>

using namespace pipewright::runtime;

/// The lines of the first steps; a broken line of a killed run is none.
static std::string linesOfSteps(const std::string &path, int64_t steps) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size == 0)
    return "";
  DataFile file(path);
  std::string text(file.bytes(), '\0');
  file.read(0, file.bytes(), text.data());
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    long long step = 0;
    if (std::sscanf(line.c_str(), "{\"step\":%lld,", &step) == 1 &&
        step <= steps && line.ends_with('}'))
      kept += line + "\n";
  }
  return kept;
}

void JsonLines::open(const std::string &name, int64_t keepSteps) {
  path = name;
  if (path.empty())
    return;
  const std::string kept = keepSteps > 0 ? linesOfSteps(path, keepSteps) : "";
  file = std::fopen(path.c_str(), "w");
  if (!file || std::fputs(kept.c_str(), file) < 0 || std::fflush(file) != 0)
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
