//===- ReferenceWindows.cpp - Convolution and pooling ---------------------===//
//
// One walk over (output, window position, input) serves every op here and
// its gradient.
//
//===----------------------------------------------------------------------===//

#include "test/unit/nn/Reference.h"

#include "dialects/nn/NNInference.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace pipewright::nn;
using namespace pipewright::nn::reference;

using Index = ArrayRef<int64_t>;

/// The dimensions of an image or filter in another order.
static Tensor moved(const Tensor &x, Index permutation) {
  std::vector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(x.dim(dim));
  Tensor result(shape);
  forEach(x.shape, [&](Index from) {
    SmallVector<int64_t> to;
    for (int64_t dim : permutation)
      to.push_back(from[dim]);
    result.at(to) = x.at(from);
  });
  return result;
}

static bool areChannelsLast(Operation *op) {
  return op->hasAttr("channels_last");
}

/// An operand as formulas have it: with the channel second.
static Tensor operandOf(Operation *op, const Tensor &x) {
  return areChannelsLast(op) && x.rank() == 4 ? moved(x, kToChannelsFirst) : x;
}

/// And a result as the op has it.
static Tensor resultFor(Operation *op, const Tensor &y) {
  return areChannelsLast(op) ? moved(y, kToChannelsLast) : y;
}

static Tensor resultOf(Operation *op) {
  return operandOf(
      op, Tensor(cast<ShapedType>(op->getResult(0).getType()).getShape()));
}

/// Calls `body(output, position, input)` for every element of `output`, every
/// kernel position, and the image element below it, where there is one.
static void slide(Index output, Index image, Index kernel, Index strides,
                  Index pads, Index dilations,
                  const std::function<void(Index, Index, Index)> &body) {
  forEach(output, [&](Index out) {
    forEach(kernel, [&](Index at) {
      int64_t row = out[2] * strides[0] + at[0] * dilations[0] - pads[0];
      int64_t column = out[3] * strides[1] + at[1] * dilations[1] - pads[1];
      if (row >= 0 && row < image[2] && column >= 0 && column < image[3])
        body(out, at, {out[0], out[1], row, column});
    });
  });
}

/// Calls `body(y, x, w)` with the indices of every product of a convolution.
template <typename OpTy>
static void convolve(OpTy op, Index y, Index x, Index w,
                     const std::function<void(Index, Index, Index)> &body) {
  slide(y, x, w.drop_front(2), op.getStrides(), op.getPads(), op.getDilations(),
        [&](Index out, Index at, Index in) {
          int64_t perGroup = y[1] / static_cast<int64_t>(op.getGroups());
          for (int64_t c = 0; c < w[1]; ++c)
            body(out, {in[0], out[1] / perGroup * w[1] + c, in[2], in[3]},
                 {out[1], c, at[0], at[1]});
        });
}

static constexpr int64_t kNoDilation[] = {1, 1};

/// What each average is divided by.
template <typename OpTy>
static Tensor divisors(OpTy op, Index y, Index x) {
  Tensor count(y);
  slide(y, x, op.getKernel(), op.getStrides(), op.getPads(), kNoDilation,
        [&](Index out, Index, Index) { count.at(out) += 1.0; });
  if (op.getCountIncludePad())
    count = Tensor(y, ShapedType::getNumElements(op.getKernel()));
  return count;
}

static void maxPool(MaxPoolOp op, Values &values) {
  Tensor x = operandOf(op, values[op.getX()]);
  Tensor y = resultOf(op), window(y.shape);
  y = Tensor(y.shape, -INFINITY);
  slide(y.shape, x.shape, op.getKernel(), op.getStrides(), op.getPads(),
        op.getDilations(), [&](Index out, Index at, Index in) {
          if (x.at(in) <= y.at(out))
            return;
          y.at(out) = x.at(in);
          window.at(out) = at[0] * op.getKernel()[1] + at[1];
        });
  values[op.getY()] = resultFor(op, y);
  values[op.getWindow()] = resultFor(op, window);
}

bool reference::evaluateWindows(Operation *op, Values &values) {
  if (auto pool = dyn_cast<MaxPoolOp>(op)) {
    maxPool(pool, values);
    return true;
  }
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(operandOf(op, values[operand]));
  auto x = [&](unsigned index) -> const Tensor & { return operands[index]; };
  Tensor y = resultOf(op);
  bool isKnown =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<ConvOp>([&](ConvOp op) {
            convolve(op, y.shape, x(0).shape, x(1).shape,
                     [&](Index out, Index in, Index w) {
                       y.at(out) += x(0).at(in) * x(1).at(w);
                     });
            if (op.getBias())
              forEach(y.shape,
                      [&](Index out) { y.at(out) += x(2).at({out[1]}); });
            return true;
          })
          .Case<ConvBackwardDataOp>([&](ConvBackwardDataOp op) {
            convolve(op, x(0).shape, y.shape, x(1).shape,
                     [&](Index out, Index in, Index w) {
                       y.at(in) += x(0).at(out) * x(1).at(w);
                     });
            return true;
          })
          .Case<ConvBackwardWeightOp>([&](ConvBackwardWeightOp op) {
            convolve(op, x(0).shape, x(1).shape, y.shape,
                     [&](Index out, Index in, Index w) {
                       y.at(w) += x(0).at(out) * x(1).at(in);
                     });
            return true;
          })
          .Case<MaxPoolBackwardOp>([&](MaxPoolBackwardOp op) {
            slide(x(0).shape, y.shape, op.getKernel(), op.getStrides(),
                  op.getPads(), op.getDilations(),
                  [&](Index out, Index at, Index in) {
                    if (x(1).at(out) == at[0] * op.getKernel()[1] + at[1])
                      y.at(in) += x(0).at(out);
                  });
            return true;
          })
          .Case<AveragePoolOp>([&](AveragePoolOp op) {
            Tensor count = divisors(op, y.shape, x(0).shape);
            slide(y.shape, x(0).shape, op.getKernel(), op.getStrides(),
                  op.getPads(), kNoDilation, [&](Index out, Index, Index in) {
                    y.at(out) += x(0).at(in) / count.at(out);
                  });
            return true;
          })
          .Case<AveragePoolBackwardOp>([&](AveragePoolBackwardOp op) {
            Tensor count = divisors(op, x(0).shape, y.shape);
            slide(x(0).shape, y.shape, op.getKernel(), op.getStrides(),
                  op.getPads(), kNoDilation, [&](Index out, Index, Index in) {
                    y.at(in) += x(0).at(out) / count.at(out);
                  });
            return true;
          })
          .Default([](Operation *) { return false; });
  if (isKnown)
    values[op->getResult(0)] = resultFor(op, y);
  return isKnown;
}
