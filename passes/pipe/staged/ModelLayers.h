//===- ModelLayers.h - A model's modules, and what ops keep -----*- C++ -*-===//
//
// What methods of cutting ask about a model beside the arithmetic of its ops.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_MODELLAYERS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_MODELLAYERS_H

#include "passes/pipe/staged/ModelOps.h"
#include "passes/planning/StageGraph.h"

#include <string>

namespace pipewright::pipe {

/// What exporters call a module that has no modules inside: a run of ops of one
/// module. What is of none belongs to the one before it, or to the first.
struct ModelLayer {
  std::string name;
  /// Numbers of its ops.
  int32_t begin = 0, end = 0;
};
llvm::SmallVector<ModelLayer> layersOf(llvm::ArrayRef<mlir::Operation *> ops);

/// Trained parameters that an op reads, in bytes, each weight once for all ops
/// with the same `seen`.
int64_t trainedBytes(const ModelOps &model, mlir::Operation *op,
                     llvm::DenseSet<mlir::Attribute> &seen);

/// Fills `kept` of the graph's nodes, which are `ops`: the results of ops, and
/// inputs of the model, that their gradients are computed from. What may be
/// computed again is counted all the same. Fails, with a diagnostic, where a
/// gradient cannot be built.
llvm::LogicalResult findKept(const ModelOps &model,
                             llvm::ArrayRef<mlir::Operation *> ops,
                             StageGraph &graph);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_MODELLAYERS_H
