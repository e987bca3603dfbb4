//===- Reference.cpp - Tensors of the reference, and pointwise ops --------===//
//
// Broadcasting indices, constants, and one line per pointwise op.
//
//===----------------------------------------------------------------------===//

#include "test/unit/nn/Reference.h"
#include "dialects/nn/NNFloatFormat.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace pipewright::nn;
using namespace pipewright::nn::reference;

Tensor::Tensor(ArrayRef<int64_t> shape, double value)
    : shape(shape), data(ShapedType::getNumElements(shape), value) {}

double &Tensor::at(ArrayRef<int64_t> index) {
  int64_t offset = 0, added = static_cast<int64_t>(index.size()) - rank();
  for (int64_t i = 0; i < rank(); ++i)
    offset = offset * shape[i] + (shape[i] == 1 ? 0 : index[i + added]);
  return data[offset];
}

void reference::forEach(ArrayRef<int64_t> shape,
                        const std::function<void(ArrayRef<int64_t>)> &body) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    int64_t rest = i;
    for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    body(index);
  }
}

static double gelu(double x, bool isTanh) {
  if (!isTanh)
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

static double geluDerivative(double x, bool isTanh) {
  if (!isTanh)
    return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) +
           x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  double scale = std::sqrt(2.0 / std::numbers::pi);
  double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) +
         0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * 0.044715 * x * x);
}

static bool holds(ComparePredicate predicate, double a, double b) {
  switch (predicate) {
  case ComparePredicate::Eq:
    return a == b;
  case ComparePredicate::Ne:
    return a != b;
  case ComparePredicate::Lt:
    return a < b;
  case ComparePredicate::Le:
    return a <= b;
  case ComparePredicate::Gt:
    return a > b;
  case ComparePredicate::Ge:
    return a >= b;
  }
  llvm_unreachable("covered switch");
}

bool reference::evaluateElementwise(Operation *op, Values &values) {
  using Fn = std::function<double(ArrayRef<double>)>;
  Fn fn =
      llvm::TypeSwitch<Operation *, Fn>(op)
          .Case<NegOp>([](auto) { return [](auto x) { return -x[0]; }; })
          .Case<ExpOp>([](auto) { return [](auto x) { return exp(x[0]); }; })
          .Case<LogOp>([](auto) { return [](auto x) { return log(x[0]); }; })
          .Case<Expm1Op>(
              [](auto) { return [](auto x) { return expm1(x[0]); }; })
          .Case<Log1pOp>(
              [](auto) { return [](auto x) { return log1p(x[0]); }; })
          .Case<SoftplusOp>([](auto) {
            return [](auto x) {
              return fmax(x[0], 0.0) + log1p(exp(-fabs(x[0])));
            };
          })
          .Case<SqrtOp>([](auto) { return [](auto x) { return sqrt(x[0]); }; })
          .Case<RsqrtOp>(
              [](auto) { return [](auto x) { return 1.0 / sqrt(x[0]); }; })
          .Case<ReciprocalOp>(
              [](auto) { return [](auto x) { return 1.0 / x[0]; }; })
          .Case<AbsOp>([](auto) { return [](auto x) { return fabs(x[0]); }; })
          .Case<ErfOp>([](auto) { return [](auto x) { return erf(x[0]); }; })
          .Case<ErfcOp>([](auto) { return [](auto x) { return erfc(x[0]); }; })
          .Case<SinOp>([](auto) { return [](auto x) { return sin(x[0]); }; })
          .Case<CosOp>([](auto) { return [](auto x) { return cos(x[0]); }; })
          .Case<AtanOp>([](auto) { return [](auto x) { return atan(x[0]); }; })
          .Case<TanhOp>([](auto) { return [](auto x) { return tanh(x[0]); }; })
          .Case<SigmoidOp>([](auto) {
            return [](auto x) { return 1.0 / (1.0 + exp(-x[0])); };
          })
          .Case<ReluOp>(
              [](auto) { return [](auto x) { return fmax(x[0], 0.0); }; })
          .Case<FakeQuantizeOp>([](FakeQuantizeOp op) {
            return [format = op.getFormat(),
                    saturates = op.getSaturate()](auto x) {
              return fakeQuantize(static_cast<float>(x[0]), format, saturates);
            };
          })
          .Case<LogicalNotOp>(
              [](auto) { return [](auto x) { return x[0] == 0.0; }; })
          .Case<GeluOp>([](GeluOp gelu) -> Fn {
            bool isTanh = gelu.getApproximate() == GeluApproximation::Tanh;
            return [=](auto x) { return ::gelu(x[0], isTanh); };
          })
          .Case<GeluBackwardOp>([](GeluBackwardOp gelu) -> Fn {
            bool isTanh = gelu.getApproximate() == GeluApproximation::Tanh;
            return [=](auto x) { return x[0] * geluDerivative(x[1], isTanh); };
          })
          .Case<CastOp>([](auto) { return [](auto x) { return x[0]; }; })
          .Case<AddOp>([](auto) { return [](auto x) { return x[0] + x[1]; }; })
          .Case<SubOp>([](auto) { return [](auto x) { return x[0] - x[1]; }; })
          .Case<MulOp>([](auto) { return [](auto x) { return x[0] * x[1]; }; })
          .Case<DivOp>([](auto) { return [](auto x) { return x[0] / x[1]; }; })
          .Case<PowOp>(
              [](auto) { return [](auto x) { return pow(x[0], x[1]); }; })
          .Case<MaximumOp>(
              [](auto) { return [](auto x) { return fmax(x[0], x[1]); }; })
          .Case<MinimumOp>(
              [](auto) { return [](auto x) { return fmin(x[0], x[1]); }; })
          .Case<LogicalAndOp>(
              [](auto) { return [](auto x) { return x[0] && x[1]; }; })
          .Case<LogicalOrOp>(
              [](auto) { return [](auto x) { return x[0] || x[1]; }; })
          .Case<CompareOp>([](CompareOp compare) -> Fn {
            ComparePredicate predicate = compare.getPredicate();
            return [=](auto x) { return holds(predicate, x[0], x[1]); };
          })
          .Case<WhereOp>(
              [](auto) { return [](auto x) { return x[0] ? x[1] : x[2]; }; })
          .Default([](Operation *) { return Fn(); });
  if (!fn)
    return false;
  Tensor result(cast<ShapedType>(op->getResult(0).getType()).getShape());
  forEach(result.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<double, 3> elements;
    for (Value operand : op->getOperands())
      elements.push_back(values[operand].at(index));
    result.at(index) = fn(elements);
  });
  values[op->getResult(0)] = std::move(result);
  return true;
}

bool reference::evaluate(Operation *op, Values &values) {
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    Tensor result(constant.getResult().getType().getShape());
    for (auto [out, value] :
         llvm::zip(result.data, constant.getValue().getValues<Attribute>()))
      if (auto number = dyn_cast<FloatAttr>(value))
        out = number.getValueAsDouble();
      else if (auto truth = dyn_cast<BoolAttr>(value))
        out = truth.getValue();
      else
        out = cast<IntegerAttr>(value).getInt();
    values[constant] = std::move(result);
    return true;
  }
  return evaluateElementwise(op, values) || evaluateShape(op, values) ||
         evaluateRows(op, values) || evaluateWindows(op, values);
}
