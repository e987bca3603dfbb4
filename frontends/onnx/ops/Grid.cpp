//===- Grid.cpp - Images read at computed places
//---------------------------===//
//
// AffineGrid and GridSample. A sample is a weighted sum of a few elements, each
// of which is a row of the image's table: the lookup has the gradient of the
// image, and the weights have that of the grid.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Rows.h"
#include "frontends/onnx/ops/Unary.h"

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// Place `i` of `size` between -1 and 1, which are the first and last element's
/// middles, or their outer ends.
static float placeOf(int64_t i, int64_t size, bool alignsCorners) {
  if (!alignsCorners)
    return float((2.0 * double(i) + 1) / double(size) - 1);
  return size == 1 ? 0.0f : float(2.0 * double(i) / double(size - 1) - 1);
}

/// theta [N, d, d + 1] times the places of all elements, and 1.
static LogicalResult importAffineGrid(NodeContext &n) {
  bool alignsCorners = n.intAttribute("align_corners", 0);
  FailureOr<Shape> size = n.constantInts(1, "size");
  if (failed(size))
    return failure();
  int64_t dims = int64_t(size->size()) - 2;
  if (dims < 2 || dims > 3 ||
      llvm::any_of(*size, [](int64_t each) { return each < 1; }))
    return n.error() << "expects a size of 4 or 5 dimensions of 1 or more";
  if (n.input(0).element != ElementKind::Float)
    return n.error() << "expects a float theta";
  if (failed(n.expectShape(0, "theta", {size->front(), dims, dims + 1})))
    return failure();
  ArrayRef<int64_t> image = ArrayRef(*size).drop_front(2);
  int64_t places = elementCount(image), width = dims + 1;
  if (failed(n.expectListable(places, "places of the grid")))
    return failure();
  ConstantTensor table(ElementKind::Float, {places, width});
  for (int64_t i = 0; i < places; ++i) {
    int64_t rest = i;
    // The last dimension is x, which comes first.
    for (int64_t d = 0; d < dims; ++d) {
      int64_t along = image[dims - 1 - d];
      table.setFloat(i * width + d,
                     placeOf(rest % along, along, alignsCorners));
      rest /= along;
    }
    table.setFloat(i * width + dims, 1);
  }
  Value theta = n.b.reshape(n.value(0), {size->front() * dims, width});
  Value grid = n.b.create<nn::MatmulOp>(
      {theta, n.made(std::move(table), ".places")}, n.b.unit("transpose_b"));
  grid = n.b.transpose(n.b.reshape(grid, {size->front(), dims, places}),
                       {0, 2, 1});
  Shape shape = {size->front()};
  llvm::append_range(shape, image);
  shape.push_back(dims);
  return n.setResult(0, n.b.reshape(grid, shape));
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

namespace {
enum class Mode { Nearest, Linear, Cubic };
enum class Beyond { Zeros, Border, Reflection };

struct Sampling {
  Mode mode;
  Beyond beyond;
  bool alignsCorners;
  /// The image's sizes, and how many samples of each there are.
  Shape image;
  int64_t samples = 1;
};

/// An element along one dimension [N, samples], and its weight; the weight is 0
/// and the element 0 where the image has none.
struct Tap {
  Value index, weight;
};
} // namespace

static FailureOr<Sampling> readSampling(NodeContext &n) {
  std::string mode = n.stringAttribute("mode", "linear");
  std::string padding = n.stringAttribute("padding_mode", "zeros");
  Sampling sampling;
  sampling.alignsCorners = n.intAttribute("align_corners", 0);
  if (mode == "nearest")
    sampling.mode = Mode::Nearest;
  else if (mode == "linear" || mode == "bilinear")
    sampling.mode = Mode::Linear;
  else if (mode == "cubic" || mode == "bicubic")
    sampling.mode = Mode::Cubic;
  else
    return n.error() << "mode=" << mode << " is not supported";
  if (padding == "zeros")
    sampling.beyond = Beyond::Zeros;
  else if (padding == "border")
    sampling.beyond = Beyond::Border;
  else if (padding == "reflection")
    sampling.beyond = Beyond::Reflection;
  else
    return n.error() << "padding_mode=" << padding << " is not supported";
  int64_t dims = n.rank(0) - 2;
  if (dims < 1 || dims > 3 || n.rank(1) != n.rank(0) ||
      n.shape(1).back() != dims || n.shape(1)[0] != n.shape(0)[0] ||
      n.input(0).element != ElementKind::Float ||
      n.input(1).element != ElementKind::Float ||
      elementCount(n.shape(0)) == 0 || elementCount(n.shape(1)) == 0)
    return n.error() << "expects a float image of rank 3 to 5 and a grid of as "
                        "many samples, of its rank, with a place in "
                     << std::max<int64_t>(dims, 1) << " dimensions";
  // Exporters and ONNX do not agree on what lies beyond the image there.
  if (sampling.mode == Mode::Cubic &&
      (dims != 2 || sampling.beyond != Beyond::Zeros))
    return n.error() << "mode=" << mode << " is supported of images of two "
                     << "dimensions with padding_mode=zeros, not of " << dims
                     << " with padding_mode=" << padding;
  sampling.image = Shape(n.shape(0).drop_front(2));
  sampling.samples = elementCount(n.shape(1).drop_front().drop_back());
  if (failed(n.expectListable(n.shape(0)[0], "samples")))
    return failure();
  return sampling;
}

static Value plus(NodeContext &n, Value x, float number) {
  return n.b.create<nn::AddOp>({x, n.b.splat(number)});
}

static Value times(NodeContext &n, Value x, float number) {
  return n.b.create<nn::MulOp>({x, n.b.splat(number)});
}

static Value difference(NodeContext &n, Value x, Value y) {
  return n.b.create<nn::SubOp>({x, y});
}

/// Thrown back at both ends of the image as often as it takes.
static Value reflected(NodeContext &n, Value x, int64_t size,
                       bool alignsCorners) {
  float low = alignsCorners ? 0.0f : -0.5f;
  float span = float(alignsCorners ? size - 1 : size);
  if (span == 0)
    return times(n, x, 0);
  Value far = n.b.create<nn::AbsOp>(plus(n, x, -low));
  Value flips = floorOf(n, n.b.create<nn::DivOp>({far, n.b.splat(span)}));
  Value rest = difference(n, far, times(n, flips, span));
  Value half = times(n, flips, 0.5f);
  Value isOdd = n.b.compare(half, floorOf(n, half), nn::ComparePredicate::Ne);
  Value back = difference(n, n.b.splat(span), rest);
  return plus(n, n.b.create<nn::WhereOp>({isOdd, back, rest}), low);
}

/// A place between -1 and 1 as one between 0 and size - 1.
static Value coordinate(NodeContext &n, const Sampling &sampling, Value place,
                        int64_t size) {
  float scale = float(sampling.alignsCorners ? size - 1 : size) / 2;
  Value x = plus(n, times(n, plus(n, place, 1), scale),
                 sampling.alignsCorners ? 0.0f : -0.5f);
  if (sampling.beyond == Beyond::Zeros)
    return x;
  if (sampling.mode == Mode::Nearest)
    x = roundToEven(n, x);
  if (sampling.beyond == Beyond::Reflection)
    x = reflected(n, x, size, sampling.alignsCorners);
  x = bounded(n, x, n.b.splat(0), nn::ComparePredicate::Le);
  return bounded(n, x, n.b.splat(float(size - 1)), nn::ComparePredicate::Ge);
}

/// The two polynomials of cubic convolution (Keys, 1981) with a = -0.75: of the
/// nearer elements, at a distance t up to 1, and of the farther, at 1 + t.
static Value nearCubic(NodeContext &n, Value t) {
  Value inner = plus(n, times(n, t, 1.25f), -2.25f);
  Value square = n.b.create<nn::MulOp>({t, t});
  return plus(n, n.b.create<nn::MulOp>({inner, square}), 1);
}

static Value farCubic(NodeContext &n, Value t) {
  Value x = plus(n, t, 1);
  Value sum = plus(n, times(n, x, -0.75f), 3.75f);
  sum = plus(n, n.b.create<nn::MulOp>({sum, x}), -6);
  return plus(n, n.b.create<nn::MulOp>({sum, x}), 3);
}

/// An element at `place`, a whole number that may lie beyond the image.
static Tap tapAt(NodeContext &n, Value place, Value weight, int64_t size) {
  auto compare = [&](float bound, nn::ComparePredicate predicate) {
    return n.b.compare(place, n.b.splat(bound), predicate);
  };
  Value isInside = n.b.create<nn::LogicalAndOp>(
      {compare(0, nn::ComparePredicate::Ge),
       compare(float(size - 1), nn::ComparePredicate::Le)});
  Value zero = n.b.splat(0);
  Value index = n.b.create<nn::WhereOp>({isInside, place, zero});
  return {n.b.cast(index, ElementKind::Int),
          n.b.create<nn::WhereOp>({isInside, weight, zero})};
}

static SmallVector<Tap> tapsAlong(NodeContext &n, const Sampling &sampling,
                                  Value x, int64_t size) {
  if (sampling.mode == Mode::Nearest) {
    Value place =
        sampling.beyond == Beyond::Zeros ? roundToEven(n, x) : floorOf(n, x);
    return {tapAt(n, place, n.b.splat(1), size)};
  }
  Value low = floorOf(n, x);
  Value t = difference(n, x, low), rest = difference(n, n.b.splat(1), t);
  if (sampling.mode == Mode::Linear)
    return {tapAt(n, low, rest, size), tapAt(n, plus(n, low, 1), t, size)};
  return {tapAt(n, plus(n, low, -1), farCubic(n, t), size),
          tapAt(n, low, nearCubic(n, t), size),
          tapAt(n, plus(n, low, 1), nearCubic(n, rest), size),
          tapAt(n, plus(n, low, 2), farCubic(n, rest), size)};
}

/// All products of taps along the dimensions, as numbers of rows of the image's
/// table and weights.
static SmallVector<Tap> tapsOf(NodeContext &n, const Sampling &sampling) {
  int64_t batch = n.shape(0)[0], dims = sampling.image.size();
  Value grid = n.b.reshape(n.value(1), {batch, sampling.samples, dims});
  ConstantTensor firsts(ElementKind::Int, {batch, 1});
  for (int64_t i = 0; i < batch; ++i)
    firsts.setInt(i, i * elementCount(sampling.image));
  SmallVector<Tap> all = {{n.made(std::move(firsts), ".firsts"), Value()}};
  int64_t stride = 1;
  // The last dimension comes first in the grid.
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = sampling.image[dims - 1 - d];
    Value place =
        n.b.reshape(n.b.sliceAxis(grid, 2, d, 1), {batch, sampling.samples});
    Value x = coordinate(n, sampling, place, size);
    SmallVector<Tap> next;
    for (const Tap &tap : tapsAlong(n, sampling, x, size))
      for (const Tap &other : all) {
        Value step =
            n.b.create<nn::MulOp>({tap.index, madeNumbers(n, {stride})});
        next.push_back({n.b.create<nn::AddOp>({other.index, step}),
                        other.weight
                            ? n.b.create<nn::MulOp>({other.weight, tap.weight})
                            : tap.weight});
      }
    all = std::move(next);
    stride *= size;
  }
  return all;
}

static LogicalResult importGridSample(NodeContext &n) {
  FailureOr<Sampling> sampling = readSampling(n);
  if (failed(sampling))
    return failure();
  int64_t batch = n.shape(0)[0], channels = n.shape(0)[1];
  Shape toLast = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  std::rotate(toLast.begin() + 1, toLast.begin() + 2, toLast.end());
  Value table = n.b.reshape(n.b.transpose(n.value(0), toLast),
                            {batch * elementCount(sampling->image), channels});
  Value sum;
  for (const Tap &tap : tapsOf(n, *sampling)) {
    Value weight = n.b.reshape(tap.weight, {batch, sampling->samples, 1});
    Value part = n.b.create<nn::MulOp>({lookUp(n, table, tap.index), weight});
    sum = sum ? n.b.create<nn::AddOp>({sum, part}) : part;
    if (!sum)
      return failure();
  }
  Shape shape = {batch, channels};
  llvm::append_range(shape, n.shape(1).drop_front().drop_back());
  return n.setResult(0, n.b.reshape(n.b.transpose(sum, {0, 2, 1}), shape));
}

ArrayRef<OpRow> gridOps() {
  static const OpRow rows[] = {
      {"AffineGrid", 20, exactly(2), importAffineGrid},
      {"GridSample", 16, exactly(2), importGridSample},
  };
  return rows;
}

} // namespace pipewright::frontend
