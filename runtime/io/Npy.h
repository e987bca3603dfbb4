//===- Npy.h - NumPy's array files -----------------------------*- C++ -*-===//
//
// Reads versions 1 to 3 of the format, C order, little endian; writes 1.0.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_NPY_H
#define PIPEWRIGHT_RUNTIME_IO_NPY_H

#include "runtime/core/Program.h"
#include "runtime/io/DataFile.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

struct NpyArray {
  std::shared_ptr<DataFile> file;
  /// NumPy's letter and width: "f4", "i8", "u1", "b1" ...
  std::string type;
  std::vector<int64_t> shape;
  /// Where in the file the values begin, and how many bytes they have.
  int64_t begin = 0;
  int64_t bytes = 0;

  /// Bytes of one value.
  int64_t width() const { return type[1] - '0'; }
  /// Copies all values; T has their width.
  template <class T>
  std::vector<T> values() const {
    std::vector<T> all(bytes / static_cast<int64_t>(sizeof(T)));
    file->read(begin, bytes, all.data());
    return all;
  }
};

/// Throws an Error that names the file when it is no array that we can read.
NpyArray readNpy(const std::string &path);

/// Writes all of the file or nothing.
void writeNpy(const std::string &path, ElementType type,
              const std::vector<int64_t> &shape, const void *values);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_NPY_H
