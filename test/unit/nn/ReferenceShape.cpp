//===- ReferenceShape.cpp - Moves, reductions and products ----------------===//
//
// Ops whose result is a loop over indices of their operands.
//
//===----------------------------------------------------------------------===//

#include "test/unit/nn/Reference.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace pipewright::nn;
using namespace pipewright::nn::reference;

using Index = SmallVector<int64_t>;

static Tensor resultOf(Operation *op) {
  return Tensor(cast<ShapedType>(op->getResult(0).getType()).getShape());
}

static Tensor transpose(TransposeOp op, const Tensor &x) {
  Tensor result = resultOf(op);
  forEach(x.shape, [&](ArrayRef<int64_t> from) {
    Index to;
    for (int64_t dim : op.getPermutation())
      to.push_back(from[dim]);
    result.at(to) = x.at(from);
  });
  return result;
}

static Tensor slice(SliceOp op, const Tensor &x) {
  Tensor result = resultOf(op);
  forEach(result.shape, [&](ArrayRef<int64_t> to) {
    Index from;
    for (size_t d = 0; d < to.size(); ++d)
      from.push_back(op.getStarts()[d] + to[d] * op.getSteps()[d]);
    result.at(to) = x.at(from);
  });
  return result;
}

static Tensor pad(PadOp op, const Tensor &x) {
  Tensor result = resultOf(op);
  forEach(x.shape, [&](ArrayRef<int64_t> from) {
    Index to(from);
    for (size_t d = 0; d < to.size(); ++d)
      to[d] += op.getLow()[d];
    result.at(to) = x.at(from);
  });
  return result;
}

static Tensor concat(ConcatOp op, Values &values) {
  Tensor result = resultOf(op);
  int64_t start = 0;
  for (Value input : op.getInputs()) {
    const Tensor &x = values[input];
    forEach(x.shape, [&](ArrayRef<int64_t> from) {
      Index to(from);
      to[op.getAxis()] += start;
      result.at(to) = x.at(from);
    });
    start += x.dim(op.getAxis());
  }
  return result;
}

template <typename OpTy>
static Tensor reduce(OpTy op, const Tensor &x) {
  bool isMax = std::is_same_v<OpTy, ReduceMaxOp>;
  Tensor result = resultOf(op);
  Tensor kept(x.shape, 0.0);
  for (int64_t axis : op.getAxes())
    kept.shape[axis] = 1;
  kept = Tensor(kept.shape, isMax ? -INFINITY : 0.0);
  forEach(x.shape, [&](ArrayRef<int64_t> index) {
    double &sum = kept.at(index);
    sum = isMax ? std::fmax(sum, x.at(index)) : sum + x.at(index);
  });
  if (std::is_same_v<OpTy, ReduceMeanOp>)
    for (double &sum : kept.data)
      sum *= static_cast<double>(kept.size()) / x.size();
  result.data = kept.data;
  return result;
}

static Tensor matmul(MatmulOp op, const Tensor &a, const Tensor &b) {
  Tensor result = resultOf(op);
  int64_t contracted = a.shape.end()[op.getTransposeA() ? -2 : -1];
  forEach(result.shape, [&](ArrayRef<int64_t> index) {
    for (int64_t k = 0; k < contracted; ++k) {
      Index left(index), right(index);
      left.back() = k;
      right.end()[-2] = k;
      if (op.getTransposeA())
        std::swap(left.back(), left.end()[-2]);
      if (op.getTransposeB())
        std::swap(right.back(), right.end()[-2]);
      result.at(index) += a.at(left) * b.at(right);
    }
  });
  return result;
}

static Tensor embedding(EmbeddingOp op, const Tensor &table,
                        const Tensor &indices) {
  Tensor result = resultOf(op);
  int64_t columns = table.dim(1);
  for (int64_t i = 0; i < result.size(); ++i) {
    auto row = static_cast<int64_t>(indices.data[i / columns]);
    result.data[i] = table.data[row * columns + i % columns];
  }
  return result;
}

static Tensor embeddingBackward(EmbeddingBackwardOp op, const Tensor &dy,
                                const Tensor &indices) {
  Tensor result = resultOf(op);
  int64_t columns = result.dim(1);
  for (int64_t i = 0; i < dy.size(); ++i) {
    auto row = static_cast<int64_t>(indices.data[i / columns]);
    result.data[row * columns + i % columns] += dy.data[i];
  }
  return result;
}

bool reference::evaluateShape(Operation *op, Values &values) {
  auto x = [&](unsigned index) -> const Tensor & {
    return values[op->getOperand(index)];
  };
  std::optional<Tensor> result =
      llvm::TypeSwitch<Operation *, std::optional<Tensor>>(op)
          .Case<ReshapeOp>([&](auto) {
            Tensor result = resultOf(op);
            result.data = x(0).data;
            return result;
          })
          .Case<BroadcastToOp>([&](auto) {
            Tensor result = resultOf(op);
            forEach(result.shape, [&](ArrayRef<int64_t> index) {
              result.at(index) = x(0).at(index);
            });
            return result;
          })
          .Case<TransposeOp>([&](auto op) { return transpose(op, x(0)); })
          .Case<SliceOp>([&](auto op) { return slice(op, x(0)); })
          .Case<PadOp>([&](auto op) { return pad(op, x(0)); })
          .Case<ConcatOp>([&](auto op) { return concat(op, values); })
          .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>(
              [&](auto op) { return reduce(op, x(0)); })
          .Case<MatmulOp>([&](auto op) { return matmul(op, x(0), x(1)); })
          .Case<EmbeddingOp>([&](auto op) { return embedding(op, x(0), x(1)); })
          .Case<EmbeddingBackwardOp>(
              [&](auto op) { return embeddingBackward(op, x(0), x(1)); })
          .Default([](Operation *) { return std::nullopt; });
  if (!result)
    return false;
  values[op->getResult(0)] = std::move(*result);
  return true;
}
