//===- MappedFile.h - A file as read-only memory ---------------*- C++ -*-===//
//
// Only the pages that are read come into memory, so a rank may open data sets
// much larger than it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_MAPPEDFILE_H
#define PIPEWRIGHT_RUNTIME_IO_MAPPEDFILE_H

#include <cstdint>
#include <string>

namespace pipewright::runtime {

class MappedFile {
public:
  /// Throws an Error when the file cannot be read or is empty.
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const unsigned char *data() const { return begin; }
  int64_t bytes() const { return size; }
  const std::string &path() const { return name; }

private:
  std::string name;
  const unsigned char *begin = nullptr;
  int64_t size = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_MAPPEDFILE_H
