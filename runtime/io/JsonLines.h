//===- JsonLines.h - A log of one JSON object per line ---------*- C++ -*-===//
//
// Each line is on disk as soon as it is known, so that a run can be watched
// and what was logged survives a crash.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_JSONLINES_H
#define PIPEWRIGHT_RUNTIME_IO_JSONLINES_H

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class JsonLines {
public:
  using Field = std::pair<const char *, double>;

  /// Logs nothing.
  JsonLines() = default;
  ~JsonLines();
  JsonLines(const JsonLines &) = delete;
  JsonLines &operator=(const JsonLines &) = delete;

  /// An empty path logs nothing. Lines that are there stay as far as they are
  /// of the first `keepSteps` steps; none for 0. Throws an Error when the file
  /// cannot be written.
  void open(const std::string &path, int64_t keepSteps);

  void write(const std::vector<Field> &fields);

private:
  std::string path;
  std::FILE *file = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_JSONLINES_H
