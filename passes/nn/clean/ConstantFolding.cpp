//===- ConstantFolding.cpp - Compute ops on constants ---------------------===//
//
// Two kinds of ops: pointwise ones are a function from numbers to a number,
// moves are a function from the place of a result element to the operand and
// place that it comes from.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/ConstantFolding.h"

#include "dialects/nn/NNFloatFormat.h"
#include "dialects/nn/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>
#include <optional>

using namespace mlir;

namespace pipewright::nn {

namespace {

/// One element. The element type says which field is meant.
struct Number {
  float real = 0;
  int64_t integer = 0;
};

/// Reads the elements of a constant as numbers; a splat stays one element.
struct Elements {
  explicit Elements(DenseElementsAttr attribute)
      : type(cast<RankedTensorType>(attribute.getType())),
        isSplat(attribute.isSplat()) {
    DenseElementsAttr source =
        isSplat ? attribute.resizeSplat(
                      RankedTensorType::get({}, type.getElementType()))
                : attribute;
    if (isa<FloatType>(type.getElementType())) {
      for (APFloat value : source.getValues<APFloat>())
        numbers.push_back({value.convertToFloat(), 0});
      return;
    }
    bool isBool = type.getElementType().isInteger(1);
    for (APInt value : source.getValues<APInt>())
      numbers.push_back({0, isBool ? static_cast<int64_t>(value.getBoolValue())
                                   : value.getSExtValue()});
  }

  Number operator[](int64_t place) const {
    return numbers[isSplat ? 0 : place];
  }

  RankedTensorType type;
  bool isSplat;
  std::vector<Number> numbers;
};

DenseElementsAttr toAttribute(RankedTensorType type, ArrayRef<Number> numbers) {
  if (type.getElementType().isF32()) {
    SmallVector<float> values;
    for (Number number : numbers)
      values.push_back(number.real);
    return DenseElementsAttr::get(type, ArrayRef<float>(values));
  }
  unsigned width = type.getElementTypeBitWidth();
  SmallVector<APInt> values;
  for (Number number : numbers)
    values.push_back(APInt(width, number.integer, /*isSigned=*/true,
                           /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, values);
}

//===----------------------------------------------------------------------===//
// Pointwise ops
//===----------------------------------------------------------------------===//

using Function = std::function<std::optional<Number>(ArrayRef<Number>)>;

Function realUnary(float (*function)(float)) {
  return [function](ArrayRef<Number> x) -> std::optional<Number> {
    return Number{function(x[0].real), 0};
  };
}

Function unaryFunction(Operation *op, bool isReal) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case(
          [](ExpOp) { return realUnary([](float x) { return std::exp(x); }); })
      .Case(
          [](LogOp) { return realUnary([](float x) { return std::log(x); }); })
      .Case([](Expm1Op) {
        return realUnary([](float x) { return std::expm1(x); });
      })
      .Case([](Log1pOp) {
        return realUnary([](float x) { return std::log1p(x); });
      })
      .Case([](SoftplusOp) {
        return realUnary([](float x) {
          return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
        });
      })
      .Case([](SqrtOp) {
        return realUnary([](float x) { return std::sqrt(x); });
      })
      .Case([](RsqrtOp) {
        return realUnary([](float x) { return 1.0f / std::sqrt(x); });
      })
      .Case([](ReciprocalOp) {
        return realUnary([](float x) { return 1.0f / x; });
      })
      .Case(
          [](ErfOp) { return realUnary([](float x) { return std::erf(x); }); })
      .Case([](ErfcOp) {
        return realUnary([](float x) { return std::erfc(x); });
      })
      .Case(
          [](SinOp) { return realUnary([](float x) { return std::sin(x); }); })
      .Case(
          [](CosOp) { return realUnary([](float x) { return std::cos(x); }); })
      .Case([](AtanOp) {
        return realUnary([](float x) { return std::atan(x); });
      })
      .Case([](TanhOp) {
        return realUnary([](float x) { return std::tanh(x); });
      })
      .Case([](SigmoidOp) {
        return realUnary([](float x) { return 1.0f / (1.0f + std::exp(-x)); });
      })
      .Case([](ReluOp) {
        return realUnary([](float x) { return x > 0 ? x : 0; });
      })
      .Case([](FakeQuantizeOp op) {
        return [format = op.getFormat(), saturates = op.getSaturate()](
                   ArrayRef<Number> x) -> std::optional<Number> {
          return Number{fakeQuantize(x[0].real, format, saturates), 0};
        };
      })
      .Case([](NegOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{-x[0].real, -x[0].integer};
        };
      })
      .Case([](AbsOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{std::fabs(x[0].real), std::abs(x[0].integer)};
        };
      })
      .Case([](LogicalNotOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{0, !x[0].integer};
        };
      })
      .Case([&](CastOp cast) -> Function {
        Type to = cast.getResult().getType().getElementType();
        bool toReal = to.isF32(), toBool = to.isInteger(1);
        return [=](ArrayRef<Number> x) -> std::optional<Number> {
          if (toBool)
            return Number{0, isReal ? x[0].real != 0 : x[0].integer != 0};
          if (toReal)
            return Number{isReal ? x[0].real : float(x[0].integer), 0};
          // Out of range is undefined.
          if (isReal && !(std::fabs(x[0].real) < 9.0e18f))
            return std::nullopt;
          return Number{0, isReal ? int64_t(x[0].real) : x[0].integer};
        };
      })
      .Default(Function());
}

template <typename T>
bool holds(ComparePredicate predicate, T a, T b) {
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
  llvm_unreachable("all predicates are covered");
}

Function manyFunction(Operation *op, bool isReal) {
  // Integers wrap around, as the compiled program's do.
  auto arithmetic = [](float (*real)(float, float),
                       uint64_t (*integer)(uint64_t, uint64_t)) -> Function {
    return [=](ArrayRef<Number> x) -> std::optional<Number> {
      return Number{real(x[0].real, x[1].real),
                    int64_t(integer(x[0].integer, x[1].integer))};
    };
  };
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case([&](AddOp) {
        return arithmetic([](float a, float b) { return a + b; },
                          [](uint64_t a, uint64_t b) { return a + b; });
      })
      .Case([&](SubOp) {
        return arithmetic([](float a, float b) { return a - b; },
                          [](uint64_t a, uint64_t b) { return a - b; });
      })
      .Case([&](MulOp) {
        return arithmetic([](float a, float b) { return a * b; },
                          [](uint64_t a, uint64_t b) { return a * b; });
      })
      .Case([&](DivOp) -> Function {
        return [=](ArrayRef<Number> x) -> std::optional<Number> {
          if (isReal)
            return Number{x[0].real / x[1].real, 0};
          if (x[1].integer == 0 || x[1].integer == -1)
            return std::nullopt;
          return Number{0, x[0].integer / x[1].integer};
        };
      })
      .Case([&](PowOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{std::pow(x[0].real, x[1].real), 0};
        };
      })
      .Case([&](MaximumOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{std::max(x[0].real, x[1].real),
                        std::max(x[0].integer, x[1].integer)};
        };
      })
      .Case([&](MinimumOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{std::min(x[0].real, x[1].real),
                        std::min(x[0].integer, x[1].integer)};
        };
      })
      .Case([&](LogicalAndOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{0, x[0].integer && x[1].integer};
        };
      })
      .Case([&](LogicalOrOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{0, x[0].integer || x[1].integer};
        };
      })
      .Case([&](CompareOp compare) -> Function {
        ComparePredicate predicate = compare.getPredicate();
        return [=](ArrayRef<Number> x) -> std::optional<Number> {
          return Number{0, isReal
                               ? holds(predicate, x[0].real, x[1].real)
                               : holds(predicate, x[0].integer, x[1].integer)};
        };
      })
      .Case([](WhereOp) -> Function {
        return [](ArrayRef<Number> x) -> std::optional<Number> {
          return x[0].integer ? x[1] : x[2];
        };
      })
      .Default(Function());
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Coordinates of a row-major place.
SmallVector<int64_t> coordinatesOf(int64_t place, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> coordinates(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    coordinates[dim] = place % shape[dim];
    place /= shape[dim];
  }
  return coordinates;
}

int64_t placeOf(ArrayRef<int64_t> coordinates, ArrayRef<int64_t> shape) {
  int64_t place = 0;
  for (auto [coordinate, size] : llvm::zip_equal(coordinates, shape))
    place = place * size + coordinate;
  return place;
}

/// Where the element of a broadcast operand is.
int64_t broadcastPlace(ArrayRef<int64_t> coordinates, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> own;
  size_t skipped = coordinates.size() - shape.size();
  for (auto [dim, size] : llvm::enumerate(shape))
    own.push_back(size == 1 ? 0 : coordinates[skipped + dim]);
  return placeOf(own, shape);
}

/// The operand and place that a result element is taken from; nullopt for a
/// zero of `nn.pad`.
using Source = std::optional<std::pair<unsigned, int64_t>>;
using Move = std::function<Source(int64_t)>;

Move moveOf(Operation *op, RankedTensorType result) {
  SmallVector<int64_t> to(result.getShape());
  auto shapeOf = [&](unsigned operand) {
    return SmallVector<int64_t>(
        cast<RankedTensorType>(op->getOperand(operand).getType()).getShape());
  };
  return llvm::TypeSwitch<Operation *, Move>(op)
      .Case([](ReshapeOp) -> Move {
        return [](int64_t place) { return Source({0u, place}); };
      })
      .Case([&](TransposeOp transpose) -> Move {
        SmallVector<int64_t> from = shapeOf(0);
        SmallVector<int64_t> permutation(transpose.getPermutation());
        return [=](int64_t place) {
          SmallVector<int64_t> at = coordinatesOf(place, to), source(at.size());
          for (auto [dim, axis] : llvm::enumerate(permutation))
            source[axis] = at[dim];
          return Source({0u, placeOf(source, from)});
        };
      })
      .Case([&](SliceOp slice) -> Move {
        SmallVector<int64_t> from = shapeOf(0);
        SmallVector<int64_t> starts(slice.getStarts()), steps(slice.getSteps());
        return [=](int64_t place) {
          SmallVector<int64_t> at = coordinatesOf(place, to);
          for (size_t dim = 0; dim < at.size(); ++dim)
            at[dim] = starts[dim] + at[dim] * steps[dim];
          return Source({0u, placeOf(at, from)});
        };
      })
      .Case([&](PadOp pad) -> Move {
        SmallVector<int64_t> from = shapeOf(0);
        SmallVector<int64_t> low(pad.getLow());
        return [=](int64_t place) {
          SmallVector<int64_t> at = coordinatesOf(place, to);
          for (size_t dim = 0; dim < at.size(); ++dim) {
            at[dim] -= low[dim];
            if (at[dim] < 0 || at[dim] >= from[dim])
              return Source();
          }
          return Source({0u, placeOf(at, from)});
        };
      })
      .Case([&](BroadcastToOp) -> Move {
        SmallVector<int64_t> from = shapeOf(0);
        return [=](int64_t place) {
          return Source({0u, broadcastPlace(coordinatesOf(place, to), from)});
        };
      })
      .Case([&](ConcatOp concat) -> Move {
        SmallVector<SmallVector<int64_t>> shapes;
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          shapes.push_back(shapeOf(i));
        int64_t axis = concat.getAxis();
        return [=](int64_t place) {
          SmallVector<int64_t> at = coordinatesOf(place, to);
          unsigned operand = 0;
          while (at[axis] >= shapes[operand][axis])
            at[axis] -= shapes[operand++][axis];
          return Source({operand, placeOf(at, shapes[operand])});
        };
      })
      .Default(Move());
}

} // namespace

DenseElementsAttr evaluateOnConstants(Operation *op,
                                      ArrayRef<DenseElementsAttr> operands,
                                      int64_t maxElements) {
  if (op->getNumResults() != 1 || operands.empty())
    return {};
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  // The last operand: the condition of `where` says nothing about the values.
  bool isReal = operands.back().getElementType().isF32();
  Function function = unaryFunction(op, isReal);
  if (!function)
    function = manyFunction(op, isReal);
  Move move = function ? Move() : moveOf(op, result);
  if (!function && !move)
    return {};

  SmallVector<Elements> inputs;
  for (DenseElementsAttr operand : operands)
    inputs.emplace_back(operand);
  bool allSplats =
      llvm::all_of(inputs, [](const Elements &input) { return input.isSplat; });
  bool isSplat =
      allSplats && (function || inputs.size() == 1) && !isa<PadOp>(op);
  int64_t count = isSplat ? 1 : result.getNumElements();
  if (count > maxElements)
    return {};

  SmallVector<Number> numbers;
  for (int64_t place = 0; place < count; ++place) {
    if (move) {
      Source source = isSplat ? Source({0u, 0}) : move(place);
      numbers.push_back(source ? inputs[source->first][source->second]
                               : Number());
      continue;
    }
    SmallVector<Number> arguments;
    SmallVector<int64_t> at;
    if (!isSplat)
      at = coordinatesOf(place, result.getShape());
    for (const Elements &input : inputs)
      arguments.push_back(
          input[input.isSplat ? 0 : broadcastPlace(at, input.type.getShape())]);
    std::optional<Number> number = function(arguments);
    if (!number)
      return {};
    numbers.push_back(*number);
  }
  return toAttribute(result, numbers);
}

} // namespace pipewright::nn
