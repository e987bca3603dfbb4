//===- Elementwise.cpp - Arithmetic, comparison and logic -----------------===//
//
// Binary and variadic ops with broadcasting, where and cast. Each has a fold:
// shape arithmetic is made of these.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Unary.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {
enum class Arithmetic { Add, Sub, Mul, Div, Mod, Fmod, Pow, Max, Min };
} // namespace

static int64_t apply(Arithmetic op, int64_t a, int64_t b) {
  // Wraps like the hardware; overflow in shape arithmetic shows as a bad size.
  auto wrap = [](uint64_t v) { return int64_t(v); };
  switch (op) {
  case Arithmetic::Add:
    return wrap(uint64_t(a) + uint64_t(b));
  case Arithmetic::Sub:
    return wrap(uint64_t(a) - uint64_t(b));
  case Arithmetic::Mul:
    return wrap(uint64_t(a) * uint64_t(b));
  case Arithmetic::Div:
    return b == -1 ? wrap(-uint64_t(a)) : a / b;
  case Arithmetic::Mod:
    // The sign is the divisor's, as in Python.
    return b == -1 ? 0 : ((a % b) + b) % b;
  case Arithmetic::Fmod:
    return b == -1 ? 0 : a % b;
  case Arithmetic::Pow:
    return int64_t(std::pow(double(a), double(b)));
  case Arithmetic::Max:
    return std::max(a, b);
  case Arithmetic::Min:
    return std::min(a, b);
  }
  llvm_unreachable("covered switch");
}

static float apply(Arithmetic op, float a, float b) {
  switch (op) {
  case Arithmetic::Add:
    return a + b;
  case Arithmetic::Sub:
    return a - b;
  case Arithmetic::Mul:
    return a * b;
  case Arithmetic::Div:
    return a / b;
  case Arithmetic::Mod: {
    // The sign is the divisor's, also of a zero.
    float rest = std::fmod(a, b);
    if (rest == 0)
      return std::copysign(rest, b);
    return (rest < 0) == (b < 0) ? rest : rest + b;
  }
  case Arithmetic::Fmod:
    return std::fmod(a, b);
  case Arithmetic::Pow:
    return std::pow(a, b);
  case Arithmetic::Max:
    return std::fmax(a, b);
  case Arithmetic::Min:
    return std::fmin(a, b);
  }
  llvm_unreachable("covered switch");
}

template <Arithmetic op>
static LogicalResult foldArithmetic(NodeContext &n) {
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands))
    return failure();
  ConstantTensor result = operands->front();
  for (unsigned i = 1; i < n.numInputs(); ++i) {
    ConstantTensor rhs = (*operands)[i];
    // Only the exponent of a power may be of another type.
    if (op == Arithmetic::Pow)
      rhs = rhs.convertTo(result.kind());
    else if (failed(checkSameKind(n, 0, i)))
      return failure();
    if (result.kind() == ElementKind::Bool)
      return n.error() << "expects numbers, but got bool";
    ConstantTensor next(result.kind(), result.shape(),
                        result.isSplat() && rhs.isSplat());
    for (int64_t k = 0, e = next.storedSize(); k < e; ++k) {
      if (result.kind() == ElementKind::Float) {
        next.setFloat(k, apply(op, result.floatAt(k), rhs.floatAt(k)));
        continue;
      }
      bool divides = op == Arithmetic::Div || op == Arithmetic::Mod ||
                     op == Arithmetic::Fmod;
      if (divides && !rhs.intAt(k))
        return n.error() << "divides by zero";
      next.setInt(k, apply(op, result.intAt(k), rhs.intAt(k)));
    }
    result = std::move(next);
  }
  return n.setResult(0, std::move(result));
}

template <typename OpTy>
static LogicalResult importBinary(NodeContext &n) {
  return n.setResult(0, n.b.create<OpTy>({n.value(0), n.value(1)}));
}

/// Sum, Max and Min take any number of operands.
template <typename OpTy>
static LogicalResult importVariadic(NodeContext &n) {
  Value result = n.value(0);
  for (unsigned i = 1; i < n.numInputs(); ++i)
    result = n.b.create<OpTy>({result, n.value(i)});
  return n.setResult(0, result);
}

static LogicalResult importMean(NodeContext &n) {
  Value sum = n.value(0);
  for (unsigned i = 1; i < n.numInputs(); ++i)
    sum = n.b.create<nn::AddOp>({sum, n.value(i)});
  return n.setResult(
      0, n.b.create<nn::MulOp>({sum, n.b.splat(1.0f / n.numInputs())}));
}

/// Integers to the power of whole numbers, by squares; they wrap.
static Value powerBySquares(NodeContext &n, const ConstantTensor &exponent,
                            int64_t highest) {
  Value power = n.value(0);
  Value result = n.made(ConstantTensor::scalar(int64_t(1)), ".one");
  for (int64_t bit = 0; highest >> bit && power && result; ++bit) {
    ConstantTensor isSet(ElementKind::Bool, exponent.shape(),
                         exponent.isSplat());
    for (int64_t i = 0, e = isSet.storedSize(); i < e; ++i)
      isSet.setBool(i, exponent.intAt(i) >> bit & 1);
    Value product = n.b.create<nn::MulOp>({result, power});
    result = n.b.create<nn::WhereOp>(
        {n.made(std::move(isSet), ".bits"), product, result});
    if (highest >> (bit + 1))
      power = n.b.create<nn::MulOp>({power, power});
  }
  return result;
}

/// Computed as floats and cut off to integers; what is as near to a whole
/// number as floats can tell is that number.
static Value powerOfFloats(NodeContext &n) {
  Value x = n.b.cast(n.value(0), ElementKind::Float);
  Value power =
      n.b.create<nn::PowOp>({x, n.b.cast(n.value(1), ElementKind::Float)});
  Value whole = roundToEven(n, power);
  Value off = n.b.create<nn::AbsOp>(n.b.create<nn::SubOp>({power, whole}));
  Value slack = n.b.create<nn::MulOp>(
      {n.b.create<nn::AbsOp>(power), n.b.splat(0x1p-18f)});
  Value isWhole = n.b.compare(off, slack, nn::ComparePredicate::Le);
  return n.b.cast(n.b.create<nn::WhereOp>({isWhole, whole, power}),
                  ElementKind::Int);
}

static LogicalResult importIntegerPow(NodeContext &n) {
  constexpr int64_t largest = 63;
  std::optional<Shape> shape = broadcastShape(n.shape(0), n.shape(1));
  if (!shape)
    return n.error() << "the shapes of the operands do not broadcast";
  const ConstantTensor *given = n.constant(1);
  if (n.input(0).element == ElementKind::Bool ||
      n.input(1).element == ElementKind::Bool)
    return n.error() << "expects numbers, but got bool";
  if (!given)
    return n.setResult(0, powerOfFloats(n));
  if (failed(n.expectComputable(given->shape())))
    return failure();
  ConstantTensor exponent = given->convertTo(ElementKind::Int);
  int64_t highest = 0;
  for (int64_t i = 0, e = given->storedSize(); i < e; ++i) {
    int64_t whole = exponent.intAt(i);
    if (whole < 0 || whole > largest ||
        (given->kind() == ElementKind::Float &&
         float(whole) != given->floatAt(i)))
      return n.setResult(0, powerOfFloats(n));
    highest = std::max(highest, whole);
  }
  return n.setResult(
      0, n.b.broadcastTo(powerBySquares(n, exponent, highest), *shape));
}

/// Small constant powers become products and roots, the form that fusion
/// knows and that has the cheaper gradient.
static LogicalResult importPow(NodeContext &n) {
  Value x = n.value(0);
  if (!x)
    return failure();
  const ConstantTensor *exponent = n.constant(1);
  if (x && exponent && exponent->size() == 1 && exponent->rank() <= n.rank(0)) {
    float power = exponent->convertTo(ElementKind::Float).floatAt(0);
    auto square = [&] { return n.b.create<nn::MulOp>({x, x}); };
    if (power == 1)
      return n.forward(0, 0);
    if (power == 2)
      return n.setResult(0, square());
    if (power == 3)
      return n.setResult(0, n.b.create<nn::MulOp>({square(), x}));
    if (power == 0.5f)
      return n.setResult(0, n.b.create<nn::SqrtOp>(x));
    if (power == -0.5f)
      return n.setResult(0, n.b.create<nn::RsqrtOp>(x));
    if (power == -1)
      return n.setResult(0, n.b.create<nn::ReciprocalOp>(x));
  }
  if (n.input(0).element != ElementKind::Float)
    return importIntegerPow(n);
  Value y = n.b.cast(n.value(1), ElementKind::Float);
  return n.setResult(0, n.b.create<nn::PowOp>({x, y}));
}

static LogicalResult foldMod(NodeContext &n) {
  return n.intAttribute("fmod", 0) ? foldArithmetic<Arithmetic::Fmod>(n)
                                   : foldArithmetic<Arithmetic::Mod>(n);
}

/// a - q b, with q = a / b rounded down, or towards zero by fmod. What rounding
/// leaves beyond the divisor is brought back. Gradients are 1 and -q, as
/// PyTorch's.
static LogicalResult importMod(NodeContext &n) {
  bool isFmod = n.intAttribute("fmod", 0);
  if (n.input(0).element != ElementKind::Float ||
      n.input(1).element != ElementKind::Float)
    return n.error() << "expects float operands, or constant ones";
  if (!broadcastShape(n.shape(0), n.shape(1)))
    return n.error() << "the shapes of the operands do not broadcast";
  Value a = n.value(0), b = n.value(1);
  Value zero = n.b.splat(0);
  auto isBelow = [&](Value x, Value y) {
    return n.b.compare(x, y, nn::ComparePredicate::Lt);
  };
  auto where = [&](Value condition, Value x, Value y) {
    return n.b.create<nn::WhereOp>({condition, x, y});
  };
  Value ratio = n.b.create<nn::DivOp>({a, b});
  Value quotient = floorOf(n, isFmod ? n.b.create<nn::AbsOp>(ratio) : ratio);
  if (isFmod)
    quotient =
        where(isBelow(ratio, zero), n.b.create<nn::NegOp>(quotient), quotient);
  // An infinite divisor times 0 would be NaN.
  Value rest =
      where(n.b.compare(quotient, zero, nn::ComparePredicate::Eq), a,
            n.b.create<nn::SubOp>({a, n.b.create<nn::MulOp>({quotient, b})}));
  // The sign is that of this operand; the rest is turned to be positive.
  Value isNegative = isBelow(isFmod ? a : b, zero);
  auto turned = [&](Value x) {
    return where(isNegative, n.b.create<nn::NegOp>(x), x);
  };
  Value size = turned(rest), limit = turned(b);
  if (isFmod)
    limit = where(isBelow(b, zero), n.b.create<nn::NegOp>(b), b);
  size =
      where(isBelow(size, limit), size, n.b.create<nn::SubOp>({size, limit}));
  size = where(isBelow(size, zero), n.b.create<nn::AddOp>({size, limit}), size);
  return n.setResult(0, turned(size));
}

//===----------------------------------------------------------------------===//
// Comparison and logic
//===----------------------------------------------------------------------===//

template <nn::ComparePredicate predicate, typename T>
static bool compareValues(T a, T b) {
  switch (predicate) {
  case nn::ComparePredicate::Eq:
    return a == b;
  case nn::ComparePredicate::Ne:
    return a != b;
  case nn::ComparePredicate::Lt:
    return a < b;
  case nn::ComparePredicate::Le:
    return a <= b;
  case nn::ComparePredicate::Gt:
    return a > b;
  case nn::ComparePredicate::Ge:
    return a >= b;
  }
  llvm_unreachable("covered switch");
}

template <nn::ComparePredicate predicate>
static LogicalResult foldCompare(NodeContext &n) {
  if (failed(checkSameKind(n, 0, 1)))
    return failure();
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands))
    return failure();
  const ConstantTensor &a = (*operands)[0], &b = (*operands)[1];
  ConstantTensor result(ElementKind::Bool, a.shape(),
                        a.isSplat() && b.isSplat());
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k) {
    if (a.kind() == ElementKind::Float)
      result.setBool(k, compareValues<predicate>(a.floatAt(k), b.floatAt(k)));
    else if (a.kind() == ElementKind::Int)
      result.setBool(k, compareValues<predicate>(a.intAt(k), b.intAt(k)));
    else
      result.setBool(k, compareValues<predicate>(a.boolAt(k), b.boolAt(k)));
  }
  return n.setResult(0, std::move(result));
}

template <nn::ComparePredicate predicate>
static LogicalResult importCompare(NodeContext &n) {
  return n.setResult(0, n.b.compare(n.value(0), n.value(1), predicate));
}

template <char op>
static LogicalResult foldLogic(NodeContext &n) {
  if (failed(checkSameKind(n, 0, 1)))
    return failure();
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands))
    return failure();
  if (operands->front().kind() != ElementKind::Bool)
    return n.error() << "expects bool operands";
  const ConstantTensor &a = (*operands)[0], &b = (*operands)[1];
  ConstantTensor result(ElementKind::Bool, a.shape(),
                        a.isSplat() && b.isSplat());
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k) {
    bool x = a.boolAt(k), y = b.boolAt(k);
    result.setBool(k, op == '&' ? x && y : op == '|' ? x || y : x != y);
  }
  return n.setResult(0, std::move(result));
}

static LogicalResult foldNot(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() != ElementKind::Bool)
    return n.error() << "expects a bool operand";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setBool(k, !result.boolAt(k));
  return n.setResult(0, std::move(result));
}

static LogicalResult importNot(NodeContext &n) {
  return n.setResult(0, n.b.create<nn::LogicalNotOp>(n.value(0)));
}

static LogicalResult foldWhere(NodeContext &n) {
  if (failed(checkSameKind(n, 1, 2)))
    return failure();
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands))
    return failure();
  const ConstantTensor &condition = operands->front();
  if (condition.kind() != ElementKind::Bool)
    return n.error() << "expects a bool condition";
  ConstantTensor result((*operands)[1].kind(), condition.shape(),
                        llvm::all_of(*operands, [](const ConstantTensor &each) {
                          return each.isSplat();
                        }));
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.copyElement(k, (*operands)[condition.boolAt(k) ? 1 : 2], k);
  return n.setResult(0, std::move(result));
}

/// A mask that is true above the diagonal is turned around, so that attention
/// always reads where(causal, scores, -inf).
static LogicalResult importWhere(NodeContext &n) {
  if (const ConstantTensor *condition = n.constant(0)) {
    if (matchCausal(*condition).kind == CausalPattern::NotLower) {
      ConstantTensor turned = *condition;
      for (int64_t k = 0, e = turned.storedSize(); k < e; ++k)
        turned.setBool(k, !turned.boolAt(k));
      auto type =
          RankedTensorType::get(turned.shape(), n.b.getBuilder().getI1Type());
      Value mask = n.b.create<nn::CausalMaskOp>({}, {}, type);
      return n.setResult(
          0, n.b.create<nn::WhereOp>({mask, n.value(2), n.value(1)}));
    }
  }
  return n.setResult(
      0, n.b.create<nn::WhereOp>({n.value(0), n.value(1), n.value(2)}));
}

//===----------------------------------------------------------------------===//
// Cast
//===----------------------------------------------------------------------===//

static LogicalResult castTo(NodeContext &n, ElementKind kind,
                            std::optional<nn::FloatFormat> format) {
  const bool saturates = n.intAttribute("saturate", 1) != 0;
  ImportedValue result = n.input(0);
  if (const ConstantTensor *constant = n.constant(0)) {
    ConstantTensor converted = constant->convertTo(kind);
    for (int64_t i = 0, e = format ? converted.storedSize() : 0; i < e; ++i)
      converted.setFloat(
          i, nn::fakeQuantize(converted.floatAt(i), *format, saturates));
    result = constantValue(std::move(converted));
  } else {
    if (result.element != kind)
      result = computedValue(n.b.cast(n.value(0), kind));
    if (format && result.format != format) {
      Value x = result.value ? result.value : n.value(0);
      SmallVector<NamedAttribute> attributes = {n.b.getBuilder().getNamedAttr(
          "format", nn::FloatFormatAttr::get(x.getContext(), *format))};
      if (saturates)
        attributes.push_back(n.b.unit("saturate"));
      result = computedValue(n.b.create<nn::FakeQuantizeOp>(x, attributes));
    }
  }
  result.format = format;
  return n.setResult(0, std::move(result));
}

static LogicalResult importCast(NodeContext &n) {
  int64_t to = n.intAttribute("to", 0);
  if (std::optional<ElementKind> kind = elementKindOf(int32_t(to)))
    return castTo(n, *kind, floatFormatOf(int32_t(to)));
  return n.error() << "to=" << elementTypeName(int32_t(to)) << " (" << to
                   << ") is not supported";
}

static LogicalResult importCastLike(NodeContext &n) {
  return castTo(n, n.input(1).element, n.input(1).format);
}

ArrayRef<OpRow> elementwiseOps() {
  using P = nn::ComparePredicate;
  using A = Arithmetic;
  static const OpRow rows[] = {
      {"Add", 7, exactly(2), importBinary<nn::AddOp>, foldArithmetic<A::Add>},
      {"Sub", 7, exactly(2), importBinary<nn::SubOp>, foldArithmetic<A::Sub>},
      {"Mul", 7, exactly(2), importBinary<nn::MulOp>, foldArithmetic<A::Mul>},
      {"Div", 7, exactly(2), importBinary<nn::DivOp>, foldArithmetic<A::Div>},
      {"Mod", 10, exactly(2), importMod, foldMod},
      {"Pow", 7, exactly(2), importPow, foldArithmetic<A::Pow>},
      {"Sum", 8, atLeast(1), importVariadic<nn::AddOp>, foldArithmetic<A::Add>},
      {"Max", 8, atLeast(1), importVariadic<nn::MaximumOp>,
       foldArithmetic<A::Max>},
      {"Min", 8, atLeast(1), importVariadic<nn::MinimumOp>,
       foldArithmetic<A::Min>},
      {"Mean", 8, atLeast(1), importMean},
      {"Equal", 7, exactly(2), importCompare<P::Eq>, foldCompare<P::Eq>},
      {"Less", 7, exactly(2), importCompare<P::Lt>, foldCompare<P::Lt>},
      {"LessOrEqual", 12, exactly(2), importCompare<P::Le>, foldCompare<P::Le>},
      {"Greater", 7, exactly(2), importCompare<P::Gt>, foldCompare<P::Gt>},
      {"GreaterOrEqual", 12, exactly(2), importCompare<P::Ge>,
       foldCompare<P::Ge>},
      {"And", 7, exactly(2), importBinary<nn::LogicalAndOp>, foldLogic<'&'>},
      {"Or", 7, exactly(2), importBinary<nn::LogicalOrOp>, foldLogic<'|'>},
      {"Xor", 7, exactly(2), importCompare<P::Ne>, foldLogic<'^'>},
      {"Not", 7, exactly(1), importNot, foldNot},
      {"Where", 9, exactly(3), importWhere, foldWhere},
      {"Cast", 7, exactly(1), importCast, importCast},
      {"CastLike", 15, exactly(2), importCastLike, importCastLike},
  };
  return rows;
}

} // namespace pipewright::frontend
