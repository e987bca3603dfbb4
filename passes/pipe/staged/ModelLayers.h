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

/// The module that an op is in, up to the first number of its name, which
/// numbers layers (`transformer.h.3`), or all of its name; empty where the
/// model has none.
std::string blockOf(mlir::Operation *op);

/// A library op that combines two tensors is what people call a layer.
bool isLayer(mlir::Operation *op);

/// Of a run of ops, by op: the number of its layer from 0 on. Numbered blocks
/// are layers, with all that comes before the next one; where no block has a
/// number, what `isLayer` is begins one.
llvm::SmallVector<int64_t> layerNumbers(llvm::ArrayRef<mlir::Operation *> ops);

/// Each trained parameter that an op's operands are made from, with the type as
/// which it is read.
void forEachTrained(
    const ModelOps &model, mlir::Operation *op,
    llvm::function_ref<void(nn::WeightOp, mlir::RankedTensorType)> visit);

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
