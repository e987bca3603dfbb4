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

  /// An empty path logs nothing. Throws an Error when the file cannot be
  /// written.
  explicit JsonLines(const std::string &path);
  ~JsonLines();
  JsonLines(const JsonLines &) = delete;
  JsonLines &operator=(const JsonLines &) = delete;

  void write(const std::vector<Field> &fields);

private:
  std::string path;
  std::FILE *file = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_JSONLINES_H
