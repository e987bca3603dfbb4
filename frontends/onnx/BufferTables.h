//===- BufferTables.h - Buffers that do not train --------------*- C++ -*-===//
//
// A file that does not say which of its initializers are buffers still shows
// it: tables of sines, slopes of attention biases and the ones and zeros of a
// norm that another one follows have no weight's name, meet nothing but
// pointwise ops, and have telling values. Doubtful ones are left to train, as
// they would without this file.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_BUFFERTABLES_H
#define PIPEWRIGHT_FRONTENDS_ONNX_BUFFERTABLES_H

#include "dialects/nn/NNOps.h"
#include "dialects/nn/WeightStore.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace pipewright::frontend {

class BufferTables {
public:
  BufferTables(mlir::func::FuncOp model, const nn::WeightStore &weights);

  /// What kind of buffer the weight looks like, for people to read; empty if it
  /// looks like something that is learned. `name` is that of the initializer.
  llvm::StringRef describe(nn::WeightOp weight, llvm::StringRef name) const;

private:
  /// Whether a value depends on an input of the model.
  bool isActivation(mlir::Value value) const {
    return activations.contains(value);
  }
  bool meetsOnlyPointwise(mlir::Value value) const;
  bool precedesAnotherScale(mlir::Value value) const;

  const nn::WeightStore &weights;
  llvm::DenseSet<mlir::Value> activations;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::Value>> reads;
};

/// Each column along some dimension is a wave or a line, as positional tables
/// are: every element and the one after the next add up to the same multiple of
/// the element between them.
bool isWaveTable(llvm::ArrayRef<float> values, llvm::ArrayRef<int64_t> shape);

/// The slopes of ALiBi (Press et al. 2022) for as many heads.
bool areAlibiSlopes(llvm::ArrayRef<float> values);

/// Names that exporters make up for tensors that had none in the model.
bool isGeneratedName(llvm::StringRef name);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_BUFFERTABLES_H
