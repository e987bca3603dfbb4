//===- LossBuilder.cpp - Losses as nn ops ---------------------------------===//
//
// The losses that a model may bring with it or that an option adds.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/LossBuilder.h"

using namespace mlir;

namespace pipewright::frontend {

Value buildCrossEntropy(TensorBuilder &b, Value logits, Value labels,
                        int64_t ignoredLabel) {
  if (!logits || !labels)
    return Value();
  ArrayRef<int64_t> shape = shapeOf(logits), leading = shape.drop_back();
  if (shapeOf(labels) != leading) {
    auto diag = b.error() << "expects labels of shape [";
    llvm::interleaveComma(leading, diag);
    diag << "], but got [";
    llvm::interleaveComma(shapeOf(labels), diag);
    diag << "]";
    return Value();
  }
  int64_t rows = elementCount(leading);
  logits = b.reshape(logits, {rows, shape.back()});
  labels = b.reshape(labels, rows);
  return b.create<nn::SoftmaxCrossEntropyOp>(
      {logits, labels}, b.integer("ignore_index", ignoredLabel));
}

Value buildMeanSquaredError(TensorBuilder &b, Value prediction, Value target) {
  Value difference = b.create<nn::SubOp>({prediction, target});
  Value square = b.create<nn::MulOp>({difference, difference});
  if (!square || shapeOf(square).empty())
    return square;
  Shape axes =
      llvm::to_vector<4>(llvm::seq<int64_t>(0, shapeOf(square).size()));
  return b.reduce<nn::ReduceMeanOp>(square, axes, /*keepDims=*/false);
}

} // namespace pipewright::frontend
