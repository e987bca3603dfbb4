//===- EvaluationMode.h - What an export lost for training -----*- C++ -*-===//
//
// Exporters rewrite models for inference: they fold batch norm, break weight
// ties, merge equal weights, drop dropout. Such a model still trains, but not
// as its author meant; the user is told how.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_EVALUATIONMODE_H
#define PIPEWRIGHT_FRONTENDS_ONNX_EVALUATIONMODE_H

#include "frontends/onnx/GraphImporter.h"

namespace pipewright::frontend {

/// Whether the graph shows signs of an export in training mode.
bool isTrainingExport(const ModelFile &file);

/// Whether a node is a batch normalization that was exported to train with
/// each batch's statistics.
bool isTrainingNorm(const onnx::NodeProto &node, int64_t opset);

/// Whether one matrix is the other transposed; false for those of one value.
/// The shapes fit.
bool isTransposed(const FloatBytes &a, const FloatBytes &b);

/// Adds warnings about an imported graph.
llvm::LogicalResult warnAboutEvaluationMode(GraphImporter &graph);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_EVALUATIONMODE_H
