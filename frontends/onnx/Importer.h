//===- Importer.h - ONNX model to nn dialect -------------------*- C++ -*-===//
//
// The one entry point of the ONNX frontend. No ONNX type is visible here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_IMPORTER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_IMPORTER_H

#include "frontends/common/Frontend.h"

namespace pipewright::frontend {

/// Imports a model. Mistakes in the model or the options are reported as one
/// error through the context's diagnostic engine.
llvm::FailureOr<ImportedModel> importOnnx(const ImportOptions &options,
                                          mlir::MLIRContext &context);

/// Takes every file for ONNX: the last one to be asked.
const Frontend &onnxFrontend();

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_IMPORTER_H
