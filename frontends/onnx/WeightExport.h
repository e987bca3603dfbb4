//===- WeightExport.h - Trained weights back in the file -------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTEXPORT_H
#define PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTEXPORT_H

#include "frontends/common/Frontend.h"

namespace pipewright::frontend {

/// See Frontend::prepareExport. All but the values of weights stays as it is in
/// the file: opsets, IR version, metadata, functions, fields that the schema
/// does not know. A weight that is not an initializer, but what a node makes of
/// constants, takes the node's place; a Constant gets another value. Weights
/// that are one initializer in the file, and have learned apart, get one each.
llvm::Expected<ExportWeights> prepareOnnxExport(const ExportOptions &options);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTEXPORT_H
