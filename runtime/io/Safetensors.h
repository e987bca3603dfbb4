//===- Safetensors.h - Named tensors in one file ---------------*- C++ -*-===//
//
// The format of huggingface/safetensors: 8 bytes of header length, a JSON
// header, then the values.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_SAFETENSORS_H
#define PIPEWRIGHT_RUNTIME_IO_SAFETENSORS_H

#include "runtime/core/Hash.h"
#include "runtime/core/Program.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/DataFile.h"

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// How a file has values: as they are read, or as numbers of 16 bits that are
/// read as f32.
enum class StoredAs { Read, F16, BF16 };

/// A tensor of a file that is being read.
struct TensorView {
  std::shared_ptr<DataFile> file;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  /// Where in the file its values begin.
  int64_t begin = 0;
  /// As they are read.
  int64_t bytes = 0;
  StoredAs stored = StoredAs::Read;

  /// Copies a part of the values, of whole numbers.
  void read(int64_t offset, int64_t count, void *destination) const;
  /// All of them; T has their width.
  template <class T>
  std::vector<T> values() const {
    std::vector<T> all(bytes / static_cast<int64_t>(sizeof(T)));
    read(0, bytes, all.data());
    return all;
  }
};

/// Texts for people and programs, beside the tensors of a file.
using Notes = std::map<std::string, std::string>;

class SafetensorsReader {
public:
  /// Throws an Error that names the file when it is damaged.
  explicit SafetensorsReader(const std::string &path);

  /// Throws an Error when there is no such tensor, or when its type or shape
  /// is not the expected one. F16 and BF16 are read as F32 where that is
  /// expected.
  TensorView find(const std::string &name, ElementType type,
                  const std::vector<int64_t> &shape) const;

  /// A tensor of any type that we know, whatever its shape.
  TensorView view(const std::string &name) const;

  /// The names of all tensors, ascending.
  std::vector<std::string> names() const;

  const Notes &notes() const { return texts; }

  /// A hash of all names, types and shapes, and of samples of all values.
  uint64_t fingerprint() const;

private:
  struct Entry {
    std::string type;
    std::vector<int64_t> shape;
    /// Counted from the beginning of the file.
    int64_t begin = 0, end = 0;
  };
  /// `first`: where values begin. Throws an Error, or one of the JSON library.
  void readEntries(const nlohmann::json &header, int64_t first);

  std::shared_ptr<DataFile> file;
  std::map<std::string, Entry> entries;
  Notes texts;
};

/// What a file will hold, in order.
struct TensorHeader {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
};

/// What stands in front of the values: the length of the header, and the
/// header, to a multiple of 8 bytes.
std::string safetensorsHeader(const std::vector<TensorHeader> &tensors,
                              const Notes &notes = {});

/// Writes all values in the header's order, then `commit`.
class SafetensorsWriter {
public:
  SafetensorsWriter(const std::string &path,
                    const std::vector<TensorHeader> &tensors,
                    const Notes &notes = {});
  void write(const void *data, int64_t bytes);
  void commit() { file.commit(); }

  /// Of the file as far as it has been written.
  int64_t bytes() const { return written; }
  uint64_t checksum() const { return hash.value(); }

private:
  AtomicFile file;
  StreamHash hash;
  int64_t written = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_SAFETENSORS_H
