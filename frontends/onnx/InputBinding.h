//===- InputBinding.h - Sizes for a model's inputs -------------*- C++ -*-===//
//
// Everything is static after import; this gives each input dimension its size
// from the model, from --dim, or from --micro-batch-size.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_INPUTBINDING_H
#define PIPEWRIGHT_FRONTENDS_ONNX_INPUTBINDING_H

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Importer.h"

namespace pipewright::frontend {

struct BoundInputs {
  std::vector<InputBinding> inputs;
  /// Set when the file fixes another batch size than the one wanted.
  std::optional<BatchChange> batchChange;
  /// The inputs at the file's batch size, then.
  std::vector<InputBinding> originalInputs;
};

llvm::FailureOr<BoundInputs> bindInputs(const ModelFile &file,
                                        const ImportOptions &options,
                                        mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_INPUTBINDING_H
