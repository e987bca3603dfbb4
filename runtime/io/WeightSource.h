//===- WeightSource.h - Named tensors in one file or several ---*- C++ -*-===//
//
// What --weights takes: a file of safetensors, the index that other tools write
// beside several (model.safetensors.index.json), or the folder of a checkpoint.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_WEIGHTSOURCE_H
#define PIPEWRIGHT_RUNTIME_IO_WEIGHTSOURCE_H

#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/Safetensors.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// Weights that somebody asks for.
struct WeightRequest {
  /// As WeightSource takes it, or "random".
  std::string path;
  /// See WeightSource.
  std::vector<std::string> renames;
  /// Weights that `path` has not come from the file `rest`.
  bool isPartial = false;
  std::string rest;

  bool isRandom() const { return path == "random"; }
};

class WeightSource {
public:
  /// Throws an Error that names the file where one is damaged, or where two
  /// have a tensor of the same name. `renames`, FROM=TO, are applied to each
  /// name in their order: FROM is a POSIX extended regular expression, and the
  /// first place where it matches becomes TO, with $1 for its first group. One
  /// that is none, or matches no name, is an Error.
  explicit WeightSource(const std::string &path,
                        const std::vector<std::string> &renames = {});

  /// What was given.
  const std::string &name() const { return path; }

  bool contains(const std::string &name) const {
    return readers.contains(name);
  }
  /// Throws an Error when there is no such tensor, or when its type or shape
  /// is not the expected one.
  TensorView find(const std::string &name, ElementType type,
                  const std::vector<int64_t> &shape) const;
  /// A tensor of any type that we know, whatever its shape.
  TensorView view(const std::string &name) const;
  /// All names, ascending.
  std::vector<std::string> names() const;
  /// A hash of all names, types and shapes, and of samples of all values.
  uint64_t fingerprint() const;

private:
  /// A tensor of a file, under the name that it has there.
  struct FileTensor {
    const SafetensorsReader *reader;
    std::string name;
  };
  void add(const std::string &file);
  void rename(const std::string &rule);

  const std::string path;
  std::vector<std::shared_ptr<SafetensorsReader>> files;
  std::map<std::string, FileTensor> readers;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_WEIGHTSOURCE_H
