//===- ExportedTensors.h - Initializers with other values ------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_EXPORTEDTENSORS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_EXPORTEDTENSORS_H

#include "frontends/onnx/TensorReader.h"
#include "runtime/io/AtomicFile.h"

namespace pipewright::frontend {

/// Gives a tensor of any float type these values; `old` are those that it has.
/// Elements that stay as they are keep their bits, also of a wider type. A
/// tensor that stays as it is as a whole is not touched.
void setFloats(onnx::TensorProto &tensor, llvm::ArrayRef<float> values,
               llvm::ArrayRef<float> old);

/// Takes values from the file beside the model that a tensor refers to.
llvm::LogicalResult takeIn(onnx::TensorProto &tensor, TensorReader &reader);

/// A file beside a model with the values of large initializers. What goes wrong
/// with it is thrown as a runtime::Error.
class ExternalDataWriter {
public:
  /// `location` is what the model calls it: a name without a folder.
  ExternalDataWriter(const std::string &path, std::string location)
      : file(path), location(std::move(location)) {}

  /// Moves a tensor's values into the file; small ones, and those in other
  /// fields than raw_data, stay.
  void add(onnx::TensorProto &tensor);
  void commit() { file.commit(); }

private:
  runtime::AtomicFile file;
  const std::string location;
  int64_t written = 0;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_EXPORTEDTENSORS_H
