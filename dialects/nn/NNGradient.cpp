//===- NNGradient.cpp - What VJPs are built from --------------------------===//
//
// The ways back from broadcasting and reduction.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace pipewright::nn;

Value GradientBuilder::widen(Value x) {
  if (!tensorOf(x).getElementType().isBF16())
    return x;
  return CastOp::create(b, f32TensorOf(b.getContext(), tensorOf(x).getShape()),
                        x);
}

Value GradientBuilder::toElementTypeOf(Value like, Value x) {
  Type element = tensorOf(like).getElementType();
  if (tensorOf(x).getElementType() == element)
    return x;
  return CastOp::create(
      b, RankedTensorType::get(tensorOf(x).getShape(), element), x);
}

Value GradientBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (tensorOf(x).getShape() == shape)
    return x;
  return ReshapeOp::create(b, tensorOf(x).clone(shape), x);
}

Value GradientBuilder::transposeLast(Value x) {
  auto permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(x).getRank()));
  std::swap(permutation[permutation.size() - 1],
            permutation[permutation.size() - 2]);
  return TransposeOp::create(b, x, permutation);
}

Value GradientBuilder::unbroadcast(Value grad, RankedTensorType type) {
  RankedTensorType gradType = tensorOf(grad);
  int64_t added = gradType.getRank() - type.getRank();
  SmallVector<int64_t> axes;
  for (int64_t axis : llvm::seq(gradType.getRank()))
    if (axis < added ||
        (type.getDimSize(axis - added) == 1 && gradType.getDimSize(axis) != 1))
      axes.push_back(axis);
  if (!axes.empty())
    grad = ReduceSumOp::create(b, widen(grad), axes, /*keep_dims=*/false);
  return reshape(grad, type.getShape());
}

Gradients GradientBuilder::sumToOperands(Operation *op, Gradients grads) {
  for (auto [grad, operand] : llvm::zip(grads, op->getOperands()))
    if (grad)
      grad = unbroadcast(grad, tensorOf(operand));
  return grads;
}

Value GradientBuilder::keepDims(Value reduced, RankedTensorType type,
                                ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t axis : axes)
    shape[axis] = 1;
  return reshape(reduced, shape);
}

bool pipewright::nn::isWorkingCopy(Value value) {
  while (isa_and_present<ViewOpInterface, TransposeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<ParameterOp>();
  return read && read.isWorkingCopy();
}

LogicalResult
DifferentiableOpInterface::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    SmallVectorImpl<Value> &operandGrads) {
  Operation *op = getOperation();
  operandGrads.assign(op->getNumOperands(), Value());
  for (auto [index, grad] : llvm::enumerate(resultGrads.drop_front()))
    if (grad)
      return op->emitOpError("expects a gradient of its first result only, but "
                             "got one of result ")
             << index + 1;
  if (!resultGrads.front())
    return success();
  GradientBuilder g(builder, op->getLoc());
  FailureOr<Gradients> grads = buildGradients(g, resultGrads.front());
  if (failed(grads))
    return failure();
  llvm::copy(*grads, operandGrads.begin());
  return success();
}
