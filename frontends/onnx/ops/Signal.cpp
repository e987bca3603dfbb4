//===- Signal.cpp - Fourier transforms and windows ------------------------===//
//
// A transform is a product with the matrix of its waves: as many steps as a
// dimension squared, but exact gradients and no library of its own.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// DFT
//===----------------------------------------------------------------------===//

namespace {
struct Transform {
  int64_t axis;
  /// Of the signal, cut or filled with zeros; and of the result.
  int64_t length, results;
  bool isInverse;
};
} // namespace

static FailureOr<Transform> readTransform(NodeContext &n) {
  Transform transform;
  int64_t axis = n.opset < 20 ? n.intAttribute("axis", 1) : -2;
  if (n.opset >= 20 && n.hasInput(2)) {
    FailureOr<Shape> given = n.constantInts(2, "axis");
    if (failed(given))
      return failure();
    if (given->size() != 1)
      return n.error() << "expects one axis";
    axis = given->front();
  }
  FailureOr<int64_t> normal = n.normalizeAxis(axis, n.rank(0));
  if (failed(normal))
    return failure();
  transform.axis = *normal;
  transform.isInverse = n.intAttribute("inverse", 0) != 0;
  bool isHalf = n.intAttribute("onesided", 0) != 0;
  if (n.input(0).element != ElementKind::Float || n.rank(0) < 2 ||
      n.shape(0).back() < 1 || n.shape(0).back() > 2 ||
      *normal == n.rank(0) - 1)
    return n.error() << "expects floats whose last dimension is 1 (real) or 2 "
                        "(complex numbers), and an axis before it";
  if (isHalf && (transform.isInverse || n.shape(0).back() == 2))
    return n.error() << "onesided=1 is supported of real numbers, not of "
                        "complex ones or inverse transforms";
  transform.length = n.shape(0)[*normal];
  if (n.hasInput(1)) {
    FailureOr<Shape> given = n.constantInts(1, "dft_length");
    if (failed(given))
      return failure();
    if (given->size() != 1 || given->front() < 1)
      return n.error() << "expects one dft_length of 1 or more";
    transform.length = given->front();
  }
  transform.results = isHalf ? transform.length / 2 + 1 : transform.length;
  int64_t size;
  if (llvm::MulOverflow(transform.length, transform.results, size))
    size = std::numeric_limits<int64_t>::max();
  if (failed(n.expectListable(size, "elements of a matrix of waves")))
    return failure();
  return transform;
}

/// [length, results]: cosines or sines, of an inverse divided by the length.
static Value waves(NodeContext &n, const Transform &transform, bool isSine) {
  ConstantTensor table(ElementKind::Float,
                       {transform.length, transform.results});
  double scale = transform.isInverse ? 1.0 / double(transform.length) : 1.0;
  for (int64_t j = 0; j < transform.length; ++j)
    for (int64_t k = 0; k < transform.results; ++k) {
      // Whole turns are left out, so that large products keep their digits.
      double turn = double(j * k % transform.length) / double(transform.length);
      double angle = 2 * std::numbers::pi * turn;
      double wave = isSine ? std::sin(angle) : std::cos(angle);
      table.setFloat(j * transform.results + k, float(wave * scale));
    }
  return n.made(std::move(table), ".waves");
}

/// `x` along the axis, cut or filled up to the length, times a matrix.
static Value multiply(NodeContext &n, const Transform &transform, Value x,
                      Value matrix) {
  if (!x || !matrix)
    return Value();
  int64_t rank = shapeOf(x).size(), size = shapeOf(x)[transform.axis];
  if (size > transform.length)
    x = n.b.sliceAxis(x, transform.axis, 0, transform.length);
  if (size < transform.length) {
    Shape low(rank, 0), high(rank, 0);
    high[transform.axis] = transform.length - size;
    x = n.b.create<nn::PadOp>(x,
                              {n.b.ints("low", low), n.b.ints("high", high)});
  }
  Shape swap = llvm::to_vector<4>(llvm::seq<int64_t>(0, rank));
  std::swap(swap[transform.axis], swap.back());
  x = n.b.transpose(x, swap);
  if (!x)
    return Value();
  Shape shape(shapeOf(x));
  x = n.b.reshape(x,
                  {elementCount(shape) / transform.length, transform.length});
  shape.back() = transform.results;
  x = n.b.create<nn::MatmulOp>({x, matrix});
  return n.b.transpose(n.b.reshape(x, shape), swap);
}

static LogicalResult importDft(NodeContext &n) {
  FailureOr<Transform> transform = readTransform(n);
  Value x = n.value(0);
  if (failed(transform) || !x)
    return failure();
  Shape shape(n.shape(0));
  shape.pop_back();
  auto part = [&](int64_t i) {
    return n.b.reshape(n.b.sliceAxis(x, n.rank(0) - 1, i, 1), shape);
  };
  Value cosines = waves(n, *transform, false),
        sines = waves(n, *transform, true);
  auto times = [&](Value signal, Value table) {
    return multiply(n, *transform, signal, table);
  };
  // (re + i im) (cos -+ i sin), with - for the transform, + for its inverse.
  Value real = part(0);
  Value ofReal = times(real, cosines), ofImaginary = times(real, sines);
  if (!transform->isInverse)
    ofImaginary = n.b.create<nn::NegOp>(ofImaginary);
  if (n.shape(0).back() == 2) {
    Value imaginary = part(1);
    Value turned = times(imaginary, sines);
    if (transform->isInverse)
      turned = n.b.create<nn::NegOp>(turned);
    ofReal = n.b.create<nn::AddOp>({ofReal, turned});
    ofImaginary =
        n.b.create<nn::AddOp>({ofImaginary, times(imaginary, cosines)});
  }
  if (!ofReal || !ofImaginary)
    return failure();
  Shape last(shapeOf(ofReal));
  last.push_back(1);
  return n.setResult(
      0, n.b.create<nn::ConcatOp>(
             {n.b.reshape(ofReal, last), n.b.reshape(ofImaginary, last)},
             n.b.integer("axis", int64_t(last.size()) - 1)));
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// a0 - a1 cos(t) + a2 cos(2 t) with t from 0 to 2 pi.
static LogicalResult foldWindow(NodeContext &n, double a0, double a1,
                                double a2) {
  FailureOr<Shape> given = n.constantInts(0, "size");
  if (failed(given))
    return failure();
  int64_t type = n.intAttribute("output_datatype", 1);
  bool isPeriodic = n.intAttribute("periodic", 1) != 0;
  std::optional<ElementKind> kind = elementKindOf(int32_t(type));
  if (given->size() != 1 || given->front() < 1 || !kind)
    return n.error() << "expects a size of 1 or more and a type of numbers";
  int64_t size = given->front();
  if (failed(n.expectListable(size, "elements")))
    return failure();
  ConstantTensor window(ElementKind::Float, {size});
  double steps = isPeriodic ? double(size) : std::max<double>(size - 1, 1);
  for (int64_t i = 0; i < size; ++i) {
    double t = 2 * std::numbers::pi * double(i) / steps;
    window.setFloat(i, float(a0 - a1 * std::cos(t) + a2 * std::cos(2 * t)));
  }
  return n.setResult(0, window.convertTo(*kind));
}

static LogicalResult foldHann(NodeContext &n) {
  return foldWindow(n, 0.5, 0.5, 0);
}

static LogicalResult foldHamming(NodeContext &n) {
  return foldWindow(n, 25.0 / 46, 21.0 / 46, 0);
}

static LogicalResult foldBlackman(NodeContext &n) {
  return foldWindow(n, 0.42, 0.5, 0.08);
}

ArrayRef<OpRow> signalOps() {
  static const OpRow rows[] = {
      {"DFT", 17, between(1, 3), importDft},
      {"HannWindow", 17, exactly(1), nullptr, foldHann},
      {"HammingWindow", 17, exactly(1), nullptr, foldHamming},
      {"BlackmanWindow", 17, exactly(1), nullptr, foldBlackman},
  };
  return rows;
}

} // namespace pipewright::frontend
