//===- NormalizationToLinalg.cpp - norms and softmax in linalg ------------===//
//
// Variances are computed in two passes: first the mean, then the mean of the
// squared distances, so that large means do not cancel the variance.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"

#include <limits>

using namespace mlir;

namespace pipewright::nn {

using Input = LinalgBuilder::Input;

static Value square(Scalars &s, Value x) { return s.mul(x, x); }

static Value inverseSqrt(Scalars &s, Value variance, double epsilon) {
  Value shifted = s.add(variance, s.constant(epsilon));
  return s.div(s.constant(1.0), s.sqrt(shifted));
}

//===----------------------------------------------------------------------===//
// Layer norm: statistics per row
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerLayerNorm(LayerNormOp op,
                                         LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getX());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t rank = type.getRank();
  double inverse = 1.0 / shape.back();
  double epsilon = op.getEpsilon().convertToDouble();
  RankedTensorType rows = tensorType(op.getMean());
  Input x = builder.same(op.getX());
  Value sum = builder.reduce(Reduction::Sum, shape, rank - 1, x, identity);
  Value mean =
      builder.pointwise(rows, builder.same(sum), [&](Scalars &s, ValueRange a) {
        return s.mul(a[0], s.constant(inverse));
      });
  Value squares = builder.reduce(
      Reduction::Sum, shape, rank - 1, {x, builder.rows(mean, rank)},
      [](Scalars &s, ValueRange a) { return square(s, s.sub(a[0], a[1])); });
  Value rstd = builder.pointwise(
      rows, builder.same(squares), [&](Scalars &s, ValueRange a) {
        return inverseSqrt(s, s.mul(a[0], s.constant(inverse)), epsilon);
      });
  Value y =
      builder.pointwise(type,
                        {x, builder.rows(mean, rank), builder.rows(rstd, rank),
                         builder.broadcast(op.getScale(), shape),
                         builder.broadcast(op.getBias(), shape)},
                        [](Scalars &s, ValueRange a) {
                          Value normal = s.mul(s.sub(a[0], a[1]), a[2]);
                          return s.add(s.mul(normal, a[3]), a[4]);
                        });
  return {y, mean, rstd};
}

static SmallVector<Value> lowerLayerNormBackward(LayerNormBackwardOp op,
                                                 LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getX());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t rank = type.getRank();
  double inverse = 1.0 / shape.back();
  Input dy = builder.same(op.getDy()), x = builder.same(op.getX());
  Input scale = builder.broadcast(op.getScale(), shape);
  Input mean = builder.rows(op.getMean(), rank);
  Input rstd = builder.rows(op.getRstd(), rank);
  Value sum = builder.reduce(
      Reduction::Sum, shape, rank - 1, {dy, scale},
      [](Scalars &s, ValueRange a) { return s.mul(a[0], a[1]); });
  Value dot =
      builder.reduce(Reduction::Sum, shape, rank - 1,
                     {dy, scale, x, mean, rstd}, [](Scalars &s, ValueRange a) {
                       Value normal = s.mul(s.sub(a[2], a[3]), a[4]);
                       return s.mul(s.mul(a[0], a[1]), normal);
                     });
  Value dx =
      builder.pointwise(type,
                        {dy, scale, x, mean, rstd, builder.rows(sum, rank),
                         builder.rows(dot, rank)},
                        [&](Scalars &s, ValueRange a) {
                          Value normal = s.mul(s.sub(a[2], a[3]), a[4]);
                          Value shared = s.mul(s.add(a[5], s.mul(normal, a[6])),
                                               s.constant(inverse));
                          return s.mul(s.sub(s.mul(a[0], a[1]), shared), a[4]);
                        });
  SmallVector<int64_t> outer = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  Value dscale =
      builder.reduce(Reduction::Sum, shape, outer, {dy, x, mean, rstd},
                     [](Scalars &s, ValueRange a) {
                       return s.mul(a[0], s.mul(s.sub(a[1], a[2]), a[3]));
                     });
  Value dbias = builder.reduce(Reduction::Sum, shape, outer, dy, identity);
  return {dx, dscale, dbias};
}

//===----------------------------------------------------------------------===//
// Batch norm: statistics per channel
//===----------------------------------------------------------------------===//

/// All dimensions but that of the channel.
static SmallVector<int64_t> batchAxes(int64_t rank, unsigned channel) {
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != channel)
      axes.push_back(i);
  return axes;
}

static double inverseCount(RankedTensorType type, unsigned channel) {
  return static_cast<double>(type.getDimSize(channel)) / type.getNumElements();
}

static SmallVector<Value> lowerBatchNorm(BatchNormOp op,
                                         LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getX());
  ArrayRef<int64_t> shape = type.getShape();
  unsigned rank = type.getRank();
  unsigned channelAt = channelDim(rank, op.getChannelsLast());
  double inverse = inverseCount(type, channelAt);
  double epsilon = op.getEpsilon().convertToDouble();
  SmallVector<int64_t> axes = batchAxes(rank, channelAt);
  Input x = builder.same(op.getX());
  auto channel = [&](Value tensor) {
    return builder.at(tensor, rank, channelAt);
  };
  Value mean = builder.reduce(Reduction::Sum, shape, axes, x,
                              [&](Scalars &s, ValueRange a) {
                                return s.mul(a[0], s.constant(inverse));
                              });
  Value variance = builder.reduce(
      Reduction::Sum, shape, axes, {x, channel(mean)},
      [&](Scalars &s, ValueRange a) {
        return s.mul(square(s, s.sub(a[0], a[1])), s.constant(inverse));
      });
  // Scalar work per channel is cheap enough to do again for every row.
  Value y =
      builder.pointwise(type,
                        {x, channel(mean), channel(variance),
                         channel(op.getScale()), channel(op.getBias())},
                        [&](Scalars &s, ValueRange a) {
                          Value factor =
                              s.mul(inverseSqrt(s, a[2], epsilon), a[3]);
                          return s.add(s.mul(s.sub(a[0], a[1]), factor), a[4]);
                        });
  return {y, mean, variance};
}

static SmallVector<Value> lowerBatchNormBackward(BatchNormBackwardOp op,
                                                 LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getX());
  ArrayRef<int64_t> shape = type.getShape();
  unsigned rank = type.getRank();
  unsigned channelAt = channelDim(rank, op.getChannelsLast());
  double inverse = inverseCount(type, channelAt);
  double epsilon = op.getEpsilon().convertToDouble();
  SmallVector<int64_t> axes = batchAxes(rank, channelAt);
  Input dy = builder.same(op.getDy()), x = builder.same(op.getX());
  auto channel = [&](Value tensor) {
    return builder.at(tensor, rank, channelAt);
  };
  Input mean = channel(op.getMean()), variance = channel(op.getVariance());
  Value dscale =
      builder.reduce(Reduction::Sum, shape, axes, {dy, x, mean, variance},
                     [&](Scalars &s, ValueRange a) {
                       return s.mul(a[0], s.mul(s.sub(a[1], a[2]),
                                                inverseSqrt(s, a[3], epsilon)));
                     });
  Value dbias = builder.reduce(Reduction::Sum, shape, axes, dy, identity);
  Value dx = builder.pointwise(
      type,
      {dy, x, mean, variance, channel(op.getScale()), channel(dscale),
       channel(dbias)},
      [&](Scalars &s, ValueRange a) {
        Value rstd = inverseSqrt(s, a[3], epsilon);
        Value count = s.constant(inverse);
        // dx = factor * dy - slope * (x - mean) - offset
        Value factor = s.mul(a[4], rstd);
        Value slope = s.mul(s.mul(factor, s.mul(rstd, a[5])), count);
        Value offset = s.mul(s.mul(factor, a[6]), count);
        Value pulled = s.add(s.mul(slope, s.sub(a[1], a[2])), offset);
        return s.sub(s.mul(factor, a[0]), pulled);
      });
  return {dx, dscale, dbias};
}

//===----------------------------------------------------------------------===//
// Group norm: statistics per sample and group of channels
//===----------------------------------------------------------------------===//

namespace {

/// Images as `[samples, groups, channels of a group, elements of a channel]`.
struct GroupView {
  GroupView(Value image, Value statistics, double epsilon,
            LinalgBuilder &builder)
      : builder(builder), epsilon(epsilon) {
    ArrayRef<int64_t> shape = tensorType(image).getShape();
    int64_t groups = tensorType(statistics).getDimSize(1);
    domain = {shape[0], groups, shape[1] / groups,
              llvm::product_of(shape.drop_front(2))};
    inverse = 1.0 / static_cast<double>(domain[2] * domain[3]);
  }
  Input image(Value tensor) {
    return builder.same(builder.reshape(tensor, domain));
  }
  /// A number for each channel.
  Input channel(Value vector) {
    return builder.at(builder.reshape(vector, {domain[1], domain[2]}), 4,
                      {1, 2});
  }
  /// A number for each group of each sample.
  Input group(Value statistics) { return builder.at(statistics, 4, {0, 1}); }
  Value reduce(ArrayRef<int64_t> axes, ArrayRef<Input> inputs,
               LinalgBuilder::Body body) {
    return builder.reduce(Reduction::Sum, domain, axes, inputs, body);
  }
  /// The image that `body` computes, in the shape of `type`.
  Value pointwise(RankedTensorType type, ArrayRef<Input> inputs,
                  LinalgBuilder::Body body) {
    Value view = builder.pointwise(domain, type.getElementType(), inputs, body);
    return builder.reshape(view, type.getShape());
  }
  Value rstd(Scalars &s, Value variance) {
    return inverseSqrt(s, variance, epsilon);
  }

  LinalgBuilder &builder;
  SmallVector<int64_t, 4> domain;
  double epsilon, inverse;
};

} // namespace

static SmallVector<Value> lowerGroupNorm(GroupNormOp op,
                                         LinalgBuilder &builder) {
  GroupView view(op.getX(), op.getMean(), op.getEpsilon().convertToDouble(),
                 builder);
  Input x = view.image(op.getX());
  Value mean = view.reduce({2, 3}, x, [&](Scalars &s, ValueRange a) {
    return s.mul(a[0], s.constant(view.inverse));
  });
  Value variance =
      view.reduce({2, 3}, {x, view.group(mean)}, [&](Scalars &s, ValueRange a) {
        return s.mul(square(s, s.sub(a[0], a[1])), s.constant(view.inverse));
      });
  Value y =
      view.pointwise(tensorType(op.getX()),
                     {x, view.group(mean), view.group(variance),
                      view.channel(op.getScale()), view.channel(op.getBias())},
                     [&](Scalars &s, ValueRange a) {
                       Value factor = s.mul(view.rstd(s, a[2]), a[3]);
                       return s.add(s.mul(s.sub(a[0], a[1]), factor), a[4]);
                     });
  return {y, mean, variance};
}

static SmallVector<Value> lowerGroupNormBackward(GroupNormBackwardOp op,
                                                 LinalgBuilder &builder) {
  GroupView view(op.getX(), op.getMean(), op.getEpsilon().convertToDouble(),
                 builder);
  Input dy = view.image(op.getDy()), x = view.image(op.getX());
  Input mean = view.group(op.getMean());
  Input variance = view.group(op.getVariance());
  Input scale = view.channel(op.getScale());
  Value dscale = view.reduce(
      {0, 3}, {dy, x, mean, variance}, [&](Scalars &s, ValueRange a) {
        return s.mul(a[0], s.mul(s.sub(a[1], a[2]), view.rstd(s, a[3])));
      });
  Value dbias = view.reduce({0, 3}, dy, identity);
  Value sum = view.reduce({2, 3}, {dy, scale}, [](Scalars &s, ValueRange a) {
    return s.mul(a[0], a[1]);
  });
  Value dot = view.reduce(
      {2, 3}, {dy, scale, x, mean, variance}, [&](Scalars &s, ValueRange a) {
        Value normal = s.mul(s.sub(a[2], a[3]), view.rstd(s, a[4]));
        return s.mul(s.mul(a[0], a[1]), normal);
      });
  Value dx = view.pointwise(
      tensorType(op.getX()),
      {dy, x, mean, variance, scale, view.group(sum), view.group(dot)},
      [&](Scalars &s, ValueRange a) {
        Value rstd = view.rstd(s, a[3]);
        Value count = s.constant(view.inverse);
        // dx = factor * dy - slope * (x - mean) - offset
        Value factor = s.mul(a[4], rstd);
        Value slope = s.mul(s.mul(rstd, s.mul(rstd, a[6])), count);
        Value offset = s.mul(s.mul(rstd, a[5]), count);
        Value pulled = s.add(s.mul(slope, s.sub(a[1], a[2])), offset);
        return s.sub(s.mul(factor, a[0]), pulled);
      });
  // The shape of results is the channels', not that of groups of them.
  ArrayRef<int64_t> channels = tensorType(op.getScale()).getShape();
  return {dx, builder.reshape(dscale, channels),
          builder.reshape(dbias, channels), sum, dot};
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static Value lowerSoftmax(Operation *op, LinalgBuilder &builder) {
  bool logarithm = isa<LogSoftmaxOp>(op);
  RankedTensorType type = tensorType(op->getOperand(0));
  ArrayRef<int64_t> shape = type.getShape();
  int64_t rank = type.getRank();
  ArrayRef<int64_t> rowShape = shape.drop_back();
  Type f32 = builder.b.getF32Type();
  Input x = builder.same(op->getOperand(0));
  Value largest = builder.reduce(Reduction::Max, shape, rank - 1, x, identity);
  bool safe = !logarithm && cast<SoftmaxOp>(op).getSafe();
  // -inf - -inf would be NaN: a row that sees nothing is moved by nothing.
  if (safe)
    largest = builder.pointwise(
        rowShape, f32, builder.same(largest), [](Scalars &s, ValueRange a) {
          return s.max(a[0], s.constant(std::numeric_limits<float>::lowest()));
        });
  Value exponential =
      builder.pointwise(shape, f32, {x, builder.rows(largest, rank)},
                        [](Scalars &s, ValueRange a) {
                          return s.expOfNonpositive(s.sub(a[0], a[1]));
                        });
  Value sum = builder.reduce(Reduction::Sum, shape, rank - 1,
                             builder.same(exponential), identity);
  if (logarithm) {
    // Apart from the maximum, which would swallow it where it is large.
    Value logOfSum =
        builder.pointwise(rowShape, f32, builder.same(sum),
                          [](Scalars &s, ValueRange a) { return s.log(a[0]); });
    return builder.pointwise(
        type, {x, builder.rows(largest, rank), builder.rows(logOfSum, rank)},
        [](Scalars &s, ValueRange a) {
          return s.sub(s.sub(a[0], a[1]), a[2]);
        });
  }
  Value inverse = builder.pointwise(
      rowShape, f32, builder.same(sum), [&](Scalars &s, ValueRange a) {
        // Where a row sees something the sum is at least 1.
        Value divisor = safe ? s.max(a[0], s.constant(1.0)) : Value(a[0]);
        return s.div(s.constant(1.0), divisor);
      });
  return builder.pointwise(
      type, {builder.same(exponential), builder.rows(inverse, rank)},
      [](Scalars &s, ValueRange a) { return s.mul(a[0], a[1]); });
}

static Value lowerSoftmaxBackward(Operation *op, LinalgBuilder &builder) {
  bool logarithm = isa<LogSoftmaxBackwardOp>(op);
  RankedTensorType type = tensorType(op->getOperand(0));
  int64_t rank = type.getRank();
  Input dy = builder.same(op->getOperand(0));
  Input y = builder.same(op->getOperand(1));
  Value sum =
      builder.reduce(Reduction::Sum, type.getShape(), rank - 1, {dy, y},
                     [&](Scalars &s, ValueRange a) {
                       return logarithm ? Value(a[0]) : s.mul(a[0], a[1]);
                     });
  return builder.pointwise(type, {dy, y, builder.rows(sum, rank)},
                           [&](Scalars &s, ValueRange a) {
                             if (logarithm)
                               return s.sub(a[0], s.mul(s.exp(a[1]), a[2]));
                             return s.mul(a[1], s.sub(a[0], a[2]));
                           });
}

Lowered lowerNormalization(Operation *op, LinalgBuilder &builder) {
  if (auto norm = dyn_cast<BatchNormOp>(op)) {
    if (norm.getRunningMean() || norm.getRunningVariance()) {
      norm.emitOpError("expects no running statistics inside a kernel");
      return failure();
    }
    return lowerBatchNorm(norm, builder);
  }
  if (auto norm = dyn_cast<BatchNormBackwardOp>(op))
    return lowerBatchNormBackward(norm, builder);
  if (auto norm = dyn_cast<GroupNormOp>(op))
    return lowerGroupNorm(norm, builder);
  if (auto norm = dyn_cast<GroupNormBackwardOp>(op))
    return lowerGroupNormBackward(norm, builder);
  if (auto norm = dyn_cast<LayerNormOp>(op))
    return lowerLayerNorm(norm, builder);
  if (auto norm = dyn_cast<LayerNormBackwardOp>(op))
    return lowerLayerNormBackward(norm, builder);
  if (isa<SoftmaxOp, LogSoftmaxOp>(op))
    return SmallVector<Value>{lowerSoftmax(op, builder)};
  if (isa<SoftmaxBackwardOp, LogSoftmaxBackwardOp>(op))
    return SmallVector<Value>{lowerSoftmaxBackward(op, builder)};
  return failure();
}

} // namespace pipewright::nn
