//===- DataFile.h - A file that is read in pieces --------------*- C++ -*-===//
//
// Only what is asked for comes into memory, so a rank may open data sets much
// larger than it. Reads rather than maps: a mapped file that somebody cuts
// while it is used ends the process by a signal, this one by an Error.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_DATAFILE_H
#define PIPEWRIGHT_RUNTIME_IO_DATAFILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// One thread at a time uses it.
class DataFile {
public:
  /// Throws an Error when the file cannot be read, is empty, or is a folder, a
  /// pipe or a device.
  explicit DataFile(const std::string &path);
  ~DataFile();
  DataFile(const DataFile &) = delete;
  DataFile &operator=(const DataFile &) = delete;

  /// Copies a part of the file. Throws an Error when the file has become
  /// shorter than that.
  void read(int64_t offset, int64_t bytes, void *destination);
  /// The same, as memory that lasts until the next call.
  const unsigned char *view(int64_t offset, int64_t bytes);

  /// Throws an Error unless the file is as long as when it was opened.
  void checkSize() const;

  /// Whether another process writes to the file and has said so (flock).
  bool isLockedByAnother() const;

  int64_t bytes() const { return size; }
  const std::string &path() const { return name; }

private:
  void readNow(int64_t offset, int64_t bytes, void *destination) const;
  [[noreturn]] void failShorter(int64_t found) const;

  std::string name;
  int descriptor = -1;
  int64_t size = 0;
  /// What was read ahead for small reads that follow each other.
  std::vector<unsigned char> window;
  int64_t windowBegin = 0;
  /// Where the last read ended.
  int64_t next = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_DATAFILE_H
