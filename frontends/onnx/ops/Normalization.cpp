//===- Normalization.cpp - Normalizations and softmax ---------------------===//
//
// Batch normalization trains: running statistics become state. One that is
// frozen reads them as constants.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/EvaluationMode.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// Along some axes, which stay as dimensions of size 1.
struct Statistics {
  Value mean, variance;
};
} // namespace

/// What a norm divides by, computed apart: the norm's own numbers have no
/// gradient.
static Statistics statisticsOf(NodeContext &n, Value x,
                               ArrayRef<int64_t> axes) {
  Value mean = n.b.reduce<nn::ReduceMeanOp>(x, axes, /*keepDims=*/true);
  Value distance = n.b.create<nn::SubOp>({x, mean});
  Value square = n.b.create<nn::MulOp>({distance, distance});
  return {mean, n.b.reduce<nn::ReduceMeanOp>(square, axes, /*keepDims=*/true)};
}

/// The weight that input `i` names, as a state or a constant. Nodes that share
/// one initializer get a copy each, as both would write it; so does a node
/// whose initializer is also read as a scale, a bias or anything else:
/// exporters merge initializers that are equal.
static FailureOr<FlatSymbolRefAttr> runningStatistic(NodeContext &n, unsigned i,
                                                     nn::WeightRole role) {
  StringRef name = n.inputName(i);
  std::string own = name.str();
  if (n.graph.isReadAsValue(name) || !n.graph.statesInUse.insert(name).second) {
    own = n.graph.unusedName(
        (n.outputName(0) + (i == 3 ? ".running_mean" : ".running_var")).str());
    n.graph.copyWeight(own, n.input(i));
    n.graph.ownStatistics.push_back(
        {own, name.str(), n.outputName(0).str(), i});
  }
  FailureOr<std::string> symbol = n.graph.weightSymbol(own, role);
  if (failed(symbol))
    return failure();
  return FlatSymbolRefAttr::get(&n.graph.context, *symbol);
}

static Value readWeight(NodeContext &n, FlatSymbolRefAttr weight, Type type) {
  return n.b.create<nn::ParameterOp>(
      {}, n.b.getBuilder().getNamedAttr("weight", weight), type);
}

/// The running statistics after a step, which ONNX has as outputs 1 and 2:
/// momentum times the old ones, the rest from this batch.
static LogicalResult setRunningStatistics(NodeContext &n, float momentum,
                                          FlatSymbolRefAttr mean,
                                          FlatSymbolRefAttr variance) {
  ArrayRef<int64_t> shape = n.shape(0), channels = shape.slice(1, 1);
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  axes.erase(axes.begin() + 1);
  auto [newMean, newVariance] = statisticsOf(n, n.value(0), axes);
  float count = float(elementCount(shape) / channels[0]);
  if (n.graph.sampleVariance)
    newVariance =
        n.b.create<nn::MulOp>({newVariance, n.b.splat(count / (count - 1))});
  auto type = RankedTensorType::get(channels, n.b.getBuilder().getF32Type());
  auto mix = [&](FlatSymbolRefAttr state, Value now) {
    Value old = readWeight(n, state, type);
    return n.b.create<nn::AddOp>(
        {n.b.create<nn::MulOp>({old, n.b.splat(momentum)}),
         n.b.create<nn::MulOp>(
             {n.b.reshape(now, channels), n.b.splat(1 - momentum)})});
  };
  if (n.isOutputRead(1) && failed(n.setResult(1, mix(mean, newMean))))
    return failure();
  return n.isOutputRead(2) ? n.setResult(2, mix(variance, newVariance))
                           : success();
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias, all but x of [C].
static LogicalResult importFrozenNorm(NodeContext &n, float epsilon,
                                      FlatSymbolRefAttr mean,
                                      FlatSymbolRefAttr variance) {
  const int64_t channels = n.shape(0)[1];
  auto type = RankedTensorType::get(channels, n.b.getBuilder().getF32Type());
  Shape alongChannels(n.rank(0) - 1, 1);
  alongChannels[0] = channels;
  auto spread = [&](Value value) { return n.b.reshape(value, alongChannels); };
  Value deviation = n.b.create<nn::RsqrtOp>(n.b.create<nn::AddOp>(
      {readWeight(n, variance, type), n.b.splat(epsilon)}));
  Value centered =
      n.b.create<nn::SubOp>({n.value(0), spread(readWeight(n, mean, type))});
  Value normal = n.b.create<nn::MulOp>({centered, spread(deviation)});
  Value scaled = n.b.create<nn::MulOp>({normal, spread(n.weight(1))});
  return n.setResult(0, n.b.create<nn::AddOp>({scaled, spread(n.weight(2))}));
}

static LogicalResult importBatchNormalization(NodeContext &n) {
  float epsilon = n.floatAttribute("epsilon", 1e-5f);
  float momentum = n.floatAttribute("momentum", 0.9f);
  bool training = n.opset < 14 ? n.numOutputs() > 1
                               : n.intAttribute("training_mode", 0) != 0;
  if (n.opset < 9 && n.intAttribute("spatial", 1) != 1)
    return n.error() << "spatial=0 is not supported";
  if (failed(n.expectUnread(training ? 3 : 1)))
    return failure();
  const bool isFrozen = n.graph.batchNorm == BatchNorm::Frozen ||
                        (!n.graph.batchNorm && n.graph.hasTrainingNorm &&
                         !isTrainingNorm(n.node, n.opset));
  if (isFrozen)
    ++n.graph.frozenBatchNorms;
  else if (!isTrainingNorm(n.node, n.opset))
    ++n.graph.inferenceBatchNorms;
  if (n.rank(0) < 2)
    return n.error() << "expects rank 2 or more, but got " << n.rank(0);
  for (unsigned i = 3; i < 5; ++i)
    if (n.shape(i) != n.shape(0).slice(1, 1))
      return n.error() << "expects running statistics for " << n.shape(0)[1]
                       << " channels";
  const nn::WeightRole role =
      isFrozen ? nn::WeightRole::Constant : nn::WeightRole::State;
  FailureOr<FlatSymbolRefAttr> mean = runningStatistic(n, 3, role);
  if (failed(mean))
    return failure();
  FailureOr<FlatSymbolRefAttr> variance = runningStatistic(n, 4, role);
  if (failed(variance))
    return failure();
  if (isFrozen) {
    if (n.isOutputRead(1) || n.isOutputRead(2))
      return n.error() << "is frozen, but its new running statistics ('"
                       << n.outputName(n.isOutputRead(1) ? 1 : 2)
                       << "') are read: leave --batch-norm frozen out";
    return importFrozenNorm(n, epsilon, *mean, *variance);
  }
  OpBuilder &builder = n.b.getBuilder();
  SmallVector<NamedAttribute> attributes = {
      n.b.real("epsilon", epsilon), n.b.real("momentum", momentum),
      builder.getNamedAttr("running_mean", *mean),
      builder.getNamedAttr("running_variance", *variance)};
  if (n.graph.sampleVariance && elementCount(n.shape(0)) == n.shape(0)[1])
    return n.error() << "has one value per channel, which has no sample "
                        "variance: take larger micro-batches, or ONNX's "
                        "variance by --running-variance population";
  if (n.graph.sampleVariance)
    attributes.push_back(n.b.unit("sample_variance"));
  if ((n.isOutputRead(1) || n.isOutputRead(2)) &&
      failed(setRunningStatistics(n, momentum, *mean, *variance)))
    return failure();
  return n.setResult(
      0, n.b.create<nn::BatchNormOp>({n.value(0), n.weight(1), n.weight(2)},
                                     attributes));
}

/// Outputs 1 and 2 of LayerNormalization: mean and 1 / deviation of each row.
static LogicalResult setRowStatistics(NodeContext &n, int64_t axis,
                                      float epsilon) {
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(axis, n.rank(0)));
  auto [mean, variance] = statisticsOf(n, n.value(0), axes);
  if (n.isOutputRead(1) && failed(n.setResult(1, mean)))
    return failure();
  if (!n.isOutputRead(2))
    return success();
  return n.setResult(2, n.b.create<nn::RsqrtOp>(n.b.create<nn::AddOp>(
                            {variance, n.b.splat(epsilon)})));
}

/// Several normalized dimensions are flattened to one and restored.
static LogicalResult importLayerNormalization(NodeContext &n) {
  float epsilon = n.floatAttribute("epsilon", 1e-5f);
  n.intAttribute("stash_type", 1);
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -1), n.rank(0));
  if (failed(axis))
    return failure();
  ArrayRef<int64_t> shape = n.shape(0), inner = shape.drop_front(*axis);
  int64_t width = elementCount(inner);
  for (unsigned i = 1; i < n.numInputs(); ++i)
    if (n.hasInput(i) && n.shape(i) != inner)
      return n.error() << "expects scale and bias in the shape of the "
                          "normalized dimensions";
  Shape flat(shape.take_front(*axis));
  flat.push_back(width);
  Value x = n.b.reshape(n.value(0), flat);
  Value scale = n.b.reshape(n.weight(1), width);
  Value bias =
      n.hasInput(2) ? n.b.reshape(n.weight(2), width) : n.b.splat(0, width);
  Value y = n.b.create<nn::LayerNormOp>({x, scale, bias},
                                        n.b.real("epsilon", epsilon));
  if (y && (n.isOutputRead(1) || n.isOutputRead(2)) &&
      failed(setRowStatistics(n, *axis, epsilon)))
    return failure();
  return n.setResult(0, n.b.reshape(y, shape));
}

//===----------------------------------------------------------------------===//
// Group and instance normalization
//===----------------------------------------------------------------------===//

/// Input 0, [N, C, ...], normalized over each of `groups` equal parts of its
/// channels: [N, groups, elements of a part].
static Value normalizeGroups(NodeContext &n, int64_t groups, float epsilon) {
  ArrayRef<int64_t> shape = n.shape(0);
  int64_t width = elementCount(shape.drop_front()) / groups;
  Value x = n.b.reshape(n.value(0), {shape[0], groups, width});
  Value scale = n.b.splat(1, {width}), bias = n.b.splat(0, {width});
  return n.b.create<nn::LayerNormOp>({x, scale, bias},
                                     n.b.real("epsilon", epsilon));
}

/// Whether all elements of a constant or initializer are known to be `number`.
static bool isFilledWith(const NodeContext &n, unsigned i, float number) {
  ArrayRef<float> elements = n.graph.storedFloats(n.input(i));
  return !elements.empty() &&
         llvm::all_of(elements, [&](float e) { return e == number; });
}

/// Whether input `i` is a constant scale of ones (1) or bias of zeros (2).
static bool isNeutral(const NodeContext &n, unsigned i) {
  return n.constant(i) && !n.constant(i)->weightLike &&
         isFilledWith(n, i, i == 1 ? 1 : 0);
}

/// `y` times input 1 plus input 2, which have a number for each element of
/// dimension 1. What changes nothing is left out.
static Value scaleAndShift(NodeContext &n, Value y, bool isPlain) {
  if (!y || isPlain)
    return y;
  Shape along(shapeOf(y).size() - 1, 1);
  along[0] = shapeOf(y)[1];
  if (!isNeutral(n, 1))
    y = n.b.create<nn::MulOp>({y, n.b.reshape(n.weight(1), along)});
  if (!isNeutral(n, 2))
    y = n.b.create<nn::AddOp>({y, n.b.reshape(n.weight(2), along)});
  return y;
}

/// Fails unless scale and bias have `size` elements. Constants that change
/// nothing may have as many as the batch now where both were equal in the file.
static LogicalResult expectVectors(NodeContext &n, int64_t size,
                                   StringRef what) {
  for (unsigned i = 1; i < 3; ++i) {
    const OriginalValue *original = n.originalInput(i);
    bool fitted = original && ArrayRef(original->shape) == ArrayRef(size) &&
                  isNeutral(n, i);
    if (n.shape(i) != ArrayRef(size) && !fitted)
      return n.error() << "expects scale and bias of " << size
                       << " elements, one for each " << what;
  }
  return success();
}

static LogicalResult importInstanceNormalization(NodeContext &n) {
  float epsilon = n.floatAttribute("epsilon", 1e-5f);
  if (n.rank(0) < 3)
    return n.error() << "expects rank 3 or more, but got " << n.rank(0);
  int64_t channels = n.shape(0)[1];
  if (failed(expectVectors(n, channels, "channel")))
    return failure();
  // Ones and zeros that no module has as weights.
  bool isPlain = n.graph.isPlainNorm(n.node) && isFilledWith(n, 1, 1) &&
                 isFilledWith(n, 2, 0);
  Value y = n.b.reshape(normalizeGroups(n, channels, epsilon), n.shape(0));
  return n.setResult(0, scaleAndShift(n, y, isPlain));
}

/// Up to opset 20 scale and bias have a number for each group, since 21 for
/// each channel.
static LogicalResult importGroupNormalization(NodeContext &n) {
  float epsilon = n.floatAttribute("epsilon", 1e-5f);
  int64_t groups = n.intAttribute("num_groups", 0);
  n.intAttribute("stash_type", 1);
  if (n.rank(0) < 2)
    return n.error() << "expects rank 2 or more, but got " << n.rank(0);
  int64_t channels = n.shape(0)[1];
  if (groups < 1 || channels % groups != 0)
    return n.error() << "expects num_groups to divide " << channels
                     << " channels, but got " << groups;
  bool isPerGroup = n.opset < 21;
  if (failed(expectVectors(n, isPerGroup ? groups : channels,
                           isPerGroup ? "group" : "channel")))
    return failure();
  Value y = normalizeGroups(n, groups, epsilon);
  if (isPerGroup)
    return n.setResult(
        0, n.b.reshape(scaleAndShift(n, y, /*isPlain=*/false), n.shape(0)));
  y = n.b.reshape(y, n.shape(0));
  return n.setResult(0, scaleAndShift(n, y, /*isPlain=*/false));
}

/// x / sqrt(mean(x^2) + epsilon) * scale
static LogicalResult importRmsNormalization(NodeContext &n) {
  float epsilon = n.floatAttribute("epsilon", 1e-5f);
  n.intAttribute("stash_type", 1);
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -1), n.rank(0));
  if (failed(axis))
    return failure();
  if (broadcastShape(n.shape(0), n.shape(1)) != Shape(n.shape(0)))
    return n.error() << "expects a scale that broadcasts to the input";
  Value x = n.value(0);
  Value square = n.b.create<nn::MulOp>({x, x});
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(*axis, n.rank(0)));
  Value mean = n.b.reduce<nn::ReduceMeanOp>(square, axes, /*keepDims=*/true);
  Value scale = n.b.create<nn::RsqrtOp>(
      n.b.create<nn::AddOp>({mean, n.b.splat(epsilon)}));
  Value normal = n.b.create<nn::MulOp>({x, scale});
  return n.setResult(0, n.b.create<nn::MulOp>({normal, n.weight(1)}));
}

/// Up to opset 12 the dimensions from `axis` on are one; since 13 `axis` is a
/// single dimension.
template <typename OpTy>
static LogicalResult importSoftmax(NodeContext &n) {
  bool flattens = n.opset < 13;
  int64_t rank = n.rank(0);
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", flattens ? 1 : -1), rank);
  if (failed(axis))
    return failure();
  Value x = n.value(0);
  if (*axis == rank - 1)
    return n.setResult(0, n.b.create<OpTy>(x));
  ArrayRef<int64_t> shape = n.shape(0);
  if (flattens) {
    x = n.b.reshape(x, {elementCount(shape.take_front(*axis)),
                        elementCount(shape.drop_front(*axis))});
    return n.setResult(0, n.b.reshape(n.b.create<OpTy>(x), shape));
  }
  Shape swap = llvm::to_vector<4>(llvm::seq<int64_t>(0, rank));
  std::swap(swap[*axis], swap[rank - 1]);
  x = n.b.create<OpTy>(n.b.transpose(x, swap));
  return n.setResult(0, n.b.transpose(x, swap));
}

/// x / (bias + alpha / size * sum of squares over `size` channels)^beta
static LogicalResult importLrn(NodeContext &n) {
  int64_t size = n.intAttribute("size", 0);
  float alpha = n.floatAttribute("alpha", 1e-4f);
  float beta = n.floatAttribute("beta", 0.75f);
  float bias = n.floatAttribute("bias", 1);
  constexpr int64_t maxSize = 1024;
  if (size < 1 || size > maxSize || n.rank(0) < 2)
    return n.error() << "expects size of 1 to " << maxSize
                     << " and rank 2 or more, but got size " << size
                     << " and rank " << n.rank(0);
  Value x = n.value(0);
  Shape low(n.rank(0), 0), high(n.rank(0), 0);
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value square =
      n.b.create<nn::PadOp>(n.b.create<nn::MulOp>({x, x}),
                            {n.b.ints("low", low), n.b.ints("high", high)});
  Value sum = n.b.sliceAxis(square, 1, 0, n.shape(0)[1]);
  for (int64_t i = 1; i < size; ++i)
    sum = n.b.create<nn::AddOp>(
        {sum, n.b.sliceAxis(square, 1, i, n.shape(0)[1])});
  Value base = n.b.create<nn::AddOp>(
      {n.b.create<nn::MulOp>({sum, n.b.splat(alpha / float(size))}),
       n.b.splat(bias)});
  Value divisor = n.b.create<nn::PowOp>({base, n.b.splat(beta)});
  return n.setResult(0, n.b.create<nn::DivOp>({x, divisor}));
}

ArrayRef<OpRow> normalizationOps() {
  static const OpRow rows[] = {
      {"BatchNormalization", 7, exactly(5), importBatchNormalization},
      {"LayerNormalization", 17, between(2, 3), importLayerNormalization},
      {"InstanceNormalization", 7, exactly(3), importInstanceNormalization},
      {"GroupNormalization", 18, exactly(3), importGroupNormalization},
      {"RMSNormalization", 23, exactly(2), importRmsNormalization},
      {"Softmax", 7, exactly(1), importSoftmax<nn::SoftmaxOp>},
      {"LogSoftmax", 7, exactly(1), importSoftmax<nn::LogSoftmaxOp>},
      {"LRN", 7, exactly(1), importLrn},
  };
  return rows;
}

} // namespace pipewright::frontend
