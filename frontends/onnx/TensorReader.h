//===- TensorReader.h - Bytes of ONNX tensors ------------------*- C++ -*-===//
//
// ONNX stores a tensor in one of several places (a raw field, a typed field,
// another file) and types; this reads them all into the few element types
// that we compute with, and checks sizes before anything is touched.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_TENSORREADER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_TENSORREADER_H

#include "dialects/nn/NNFloatFormat.h"
#include "frontends/common/ConstantTensor.h"
#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/StringMap.h"

#include <optional>

namespace llvm {
class MemoryBuffer;
}

namespace pipewright::frontend {

/// The kind that stands for an ONNX element type; none if unsupported.
std::optional<ElementKind> elementKindOf(int32_t onnxType);
/// The format of a type of floats of 8 bits; none of others.
std::optional<nn::FloatFormat> floatFormatOf(int32_t onnxType);
/// "float32", "int64" ...
llvm::StringRef elementTypeName(int32_t onnxType);

/// float32 bytes, and what keeps them alive.
struct FloatBytes {
  Shape shape;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
};

class TensorReader {
public:
  TensorReader(const ModelFile &file, mlir::MLIRContext &context)
      : file(file), context(context) {}

  /// Reads a whole tensor. `what` begins the message of an error.
  llvm::FailureOr<ConstantTensor> readConstant(const onnx::TensorProto &tensor,
                                               llvm::StringRef what);
  /// Reads a float tensor without copying where it is stored as float32.
  llvm::FailureOr<FloatBytes> readFloats(const onnx::TensorProto &tensor,
                                         llvm::StringRef what);
  /// The values of a tensor of any type that is read, little endian and without
  /// gaps.
  llvm::FailureOr<std::string> readBytes(const onnx::TensorProto &tensor,
                                         llvm::StringRef what);
  /// Checks type and dimensions alone.
  llvm::FailureOr<Shape> readShape(const onnx::TensorProto &tensor,
                                   llvm::StringRef what);

private:
  struct Stored {
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner;
  };

  mlir::InFlightDiagnostic error(llvm::StringRef what);
  llvm::FailureOr<Stored> readStored(const onnx::TensorProto &tensor,
                                     llvm::StringRef what);
  llvm::FailureOr<Stored> readExternal(const onnx::TensorProto &tensor,
                                       llvm::StringRef what);

  const ModelFile &file;
  mlir::MLIRContext &context;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> externalFiles;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_TENSORREADER_H
