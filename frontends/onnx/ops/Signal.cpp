//===- Signal.cpp - Fourier transforms and windows ------------------------===//
//
// A transform is a product with the matrix of its waves: as many steps as a
// dimension squared, but exact gradients and no library of its own.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLimits.h"
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
  /// Steps of a wave of frequency 1.
  int64_t period;
  bool isInverse;
  /// The signal is the first half of waves whose other half mirrors it.
  bool isMirrored;
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
  if (isHalf && transform.isInverse != (n.shape(0).back() == 2))
    return n.error() << "expects onesided=1 of real numbers, or to make such "
                        "from complex ones by inverse=1";
  transform.isMirrored = isHalf && transform.isInverse;
  transform.period = n.shape(0)[*normal];
  if (transform.isMirrored)
    transform.period = std::max<int64_t>(2 * (transform.period - 1), 1);
  if (n.hasInput(1)) {
    FailureOr<Shape> given = n.constantInts(1, "dft_length");
    if (failed(given))
      return failure();
    if (given->size() != 1 || given->front() < 1)
      return n.error() << "expects one dft_length of 1 or more";
    transform.period = given->front();
  }
  int64_t half = transform.period / 2 + 1;
  transform.length = transform.isMirrored ? half : transform.period;
  transform.results = isHalf && !transform.isMirrored ? half : transform.period;
  int64_t size;
  if (llvm::MulOverflow(transform.length, transform.results, size))
    size = std::numeric_limits<int64_t>::max();
  if (failed(n.expectListable(size, "elements of a matrix of waves")))
    return failure();
  return transform;
}

/// The sine or cosine of `step` of `period` steps of a whole turn.
static double waveAt(int64_t step, int64_t period, bool isSine) {
  // Whole turns are left out, so that large products keep their digits.
  double angle = 2 * std::numbers::pi * double(step % period) / double(period);
  return isSine ? std::sin(angle) : std::cos(angle);
}

/// [length, results]: cosines or sines, of an inverse divided by the period.
static Value waves(NodeContext &n, const Transform &transform, bool isSine) {
  ConstantTensor table(ElementKind::Float,
                       {transform.length, transform.results});
  int64_t period = transform.period;
  for (int64_t j = 0; j < transform.length; ++j) {
    double scale = transform.isInverse ? 1.0 / double(period) : 1.0;
    // What is mirrored counts twice.
    if (transform.isMirrored && j != 0 && 2 * j != period)
      scale *= 2;
    for (int64_t k = 0; k < transform.results; ++k)
      table.setFloat(j * transform.results + k,
                     float(waveAt(j * k, period, isSine) * scale));
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
  if (transform->isMirrored)
    return n.setResult(0, n.b.reshape(ofReal, last));
  return n.setResult(
      0, n.b.create<nn::ConcatOp>(
             {n.b.reshape(ofReal, last), n.b.reshape(ofImaginary, last)},
             n.b.integer("axis", int64_t(last.size()) - 1)));
}

//===----------------------------------------------------------------------===//
// STFT
//===----------------------------------------------------------------------===//

namespace {
/// Frames of a signal [N, samples, parts].
struct Frames {
  int64_t step, length, results;
};
} // namespace

static FailureOr<int64_t> oneInteger(NodeContext &n, unsigned i,
                                     StringRef what) {
  FailureOr<Shape> given = n.constantInts(i, what);
  if (failed(given))
    return failure();
  if (given->size() != 1 || given->front() < 1 ||
      given->front() > nn::kMaxWindowEntry)
    return n.error() << "expects one " << what << " of 1 to "
                     << nn::kMaxWindowEntry;
  return given->front();
}

static FailureOr<Frames> readFrames(NodeContext &n) {
  bool isHalf = n.intAttribute("onesided", 1) != 0;
  if (n.input(0).element != ElementKind::Float || n.rank(0) != 3 ||
      n.shape(0)[2] < 1 || n.shape(0)[2] > 2 || (isHalf && n.shape(0)[2] == 2))
    return n.error() << "expects floats [batch, samples, 1], or without "
                        "onesided [batch, samples, 2] of complex numbers";
  FailureOr<int64_t> step = oneInteger(n, 1, "frame_step");
  if (failed(step))
    return failure();
  Frames frames{*step, n.shape(0)[1], 0};
  if (n.hasInput(2))
    frames.length = n.rank(2) == 1 ? n.shape(2)[0] : 0;
  if (n.hasInput(3)) {
    FailureOr<int64_t> length = oneInteger(n, 3, "frame_length");
    if (failed(length))
      return failure();
    frames.length = *length;
  }
  if (failed(n.expectShape(2, "window", {frames.length})))
    return failure();
  if (frames.length < 1 || frames.length > n.shape(0)[1] || n.shape(0)[0] < 1 ||
      (n.hasInput(2) && n.input(2).element != ElementKind::Float))
    return n.error() << "expects frames of 1 to " << n.shape(0)[1]
                     << " samples, but got " << frames.length;
  frames.results = isHalf ? frames.length / 2 + 1 : frames.length;
  if (failed(n.expectListable(elementCount({4, frames.results, frames.length}),
                              "elements of a matrix of waves")))
    return failure();
  return frames;
}

/// [2 * results, parts, length]: what the real and then the imaginary parts of
/// results take of each part of the signal.
static ConstantTensor frameWaves(const Frames &frames, int64_t parts) {
  ConstantTensor table(ElementKind::Float,
                       {2 * frames.results, parts, frames.length});
  int64_t at = 0;
  for (int64_t ofImaginary : {0, 1})
    for (int64_t k = 0; k < frames.results; ++k)
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t j = 0; j < frames.length; ++j) {
          // (re + i im) (cos - i sin)
          bool isSine = part != ofImaginary;
          double wave = waveAt(j * k, frames.length, isSine);
          table.setFloat(at++, float(isSine && ofImaginary ? -wave : wave));
        }
  return table;
}

/// A convolution whose filters are waves, weighted by the window.
static LogicalResult importStft(NodeContext &n) {
  FailureOr<Frames> frames = readFrames(n);
  if (failed(frames))
    return failure();
  int64_t batch = n.shape(0)[0], samples = n.shape(0)[1], parts = n.shape(0)[2],
          filters = 2 * frames->results;
  Value waves = n.made(frameWaves(*frames, parts), ".waves");
  if (n.hasInput(2))
    waves = n.b.create<nn::MulOp>({waves, n.value(2)});
  Value signal = n.b.transpose(n.value(0), {0, 2, 1});
  Value y = n.b.create<nn::ConvOp>(
      {n.b.reshape(signal, {batch, parts, 1, samples}),
       n.b.reshape(waves, {filters, parts, 1, frames->length})},
      {n.b.ints("strides", {1, frames->step}), n.b.ints("pads", {0, 0, 0, 0}),
       n.b.ints("dilations", {1, 1}), n.b.integer("groups", 1)});
  if (!y)
    return failure();
  y = n.b.reshape(y, {batch, 2, frames->results, shapeOf(y)[3]});
  return n.setResult(0, n.b.transpose(y, {0, 3, 2, 1}));
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
      {"STFT", 17, between(2, 4), importStft},
      {"HannWindow", 17, exactly(1), nullptr, foldHann},
      {"HammingWindow", 17, exactly(1), nullptr, foldHamming},
      {"BlackmanWindow", 17, exactly(1), nullptr, foldBlackman},
  };
  return rows;
}

} // namespace pipewright::frontend
