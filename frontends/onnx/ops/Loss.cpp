//===- Loss.cpp - Losses inside the model ---------------------------------===//
//
// ONNX puts the classes in dimension 1; nn wants them last and the rest flat.
// The mean without class weights is nn.softmax_cross_entropy. All other losses
// pick the label's element of each row of log probabilities.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/LossBuilder.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

using namespace mlir;

namespace pipewright::frontend {

/// Moves dimension 1 to the end.
static Value classesLast(NodeContext &n, Value x) {
  Shape order = llvm::to_vector<4>(llvm::seq<int64_t>(0, shapeOf(x).size()));
  order.erase(order.begin() + 1);
  order.push_back(1);
  return n.b.transpose(x, order);
}

/// The reverse of classesLast.
static Value classesSecond(NodeContext &n, Value x) {
  if (!x)
    return x;
  int64_t rank = shapeOf(x).size();
  Shape order = llvm::to_vector<4>(llvm::seq<int64_t>(0, rank - 1));
  order.insert(order.begin() + 1, rank - 1);
  return n.b.transpose(x, order);
}

namespace {
struct Loss {
  std::string reduction;
  std::optional<int64_t> ignored;
};
} // namespace

/// Fails unless labels and class weights fit to the scores.
static FailureOr<Loss> readLoss(NodeContext &n) {
  Loss loss;
  loss.reduction = n.stringAttribute("reduction", "mean");
  if (n.hasAttribute("ignore_index"))
    loss.ignored = n.intAttribute("ignore_index", 0);
  if (!llvm::is_contained({"mean", "sum", "none"}, loss.reduction))
    return n.error() << "expects reduction mean, sum or none, but got "
                     << loss.reduction;
  if (n.rank(0) < 2)
    return n.error() << "expects scores of rank 2 or more, but got rank "
                     << n.rank(0);
  Shape labels(n.shape(0));
  labels.erase(labels.begin() + 1);
  if (n.shape(1) != ArrayRef(labels) ||
      n.input(1).element != ElementKind::Int) {
    auto diag = n.error() << "expects labels of shape [";
    llvm::interleaveComma(labels, diag);
    diag << "], but got [";
    llvm::interleaveComma(n.shape(1), diag);
    return diag << "]";
  }
  int64_t classes = n.shape(0)[1];
  if (n.hasInput(2) && (n.shape(2) != ArrayRef(classes) ||
                        n.input(2).element != ElementKind::Float))
    return n.error() << "expects a weight for each of " << classes
                     << " classes";
  return loss;
}

//===----------------------------------------------------------------------===//
// Losses that are picked from log probabilities
//===----------------------------------------------------------------------===//

/// The weight of each class, [classes, 1]. Nobody learns it.
static Value classWeights(NodeContext &n, int64_t classes) {
  if (!n.hasInput(2))
    return n.b.splat(1, {classes, 1});
  if (n.input(2).isWeight())
    n.graph.untrainedTables[n.input(2).weight] = "weights of classes";
  return n.b.reshape(n.value(2), {classes, 1});
}

/// Element `labels[i]` of each row of `x` [rows, classes].
static Value pick(NodeContext &n, Value x, Value labels) {
  if (!x || !labels)
    return Value();
  int64_t rows = shapeOf(x)[0], classes = shapeOf(x)[1];
  Shape numbers = llvm::to_vector<4>(llvm::seq<int64_t>(0, classes));
  Value each = n.made(ConstantTensor::ofInts(numbers).reshaped({1, classes}),
                      ".classes");
  Value isPicked = n.b.compare(n.b.reshape(labels, {rows, 1}), each,
                               nn::ComparePredicate::Eq);
  Value kept = n.b.create<nn::WhereOp>({isPicked, x, n.b.splat(0)});
  return n.b.reduce<nn::ReduceSumOp>(kept, {1}, /*keepDims=*/false);
}

/// sum(losses) / sum(weights); 0 where no label counts, as in
/// nn.softmax_cross_entropy.
static Value weightedMean(NodeContext &n, Value losses, Value weights) {
  Value sum = n.b.reduce<nn::ReduceSumOp>(losses, {0}, /*keepDims=*/false);
  Value all = n.b.reduce<nn::ReduceSumOp>(weights, {0}, /*keepDims=*/false);
  Value isNone = n.b.compare(all, n.b.splat(0), nn::ComparePredicate::Eq);
  all = n.b.create<nn::WhereOp>({isNone, n.b.splat(1), all});
  return n.b.create<nn::DivOp>({sum, all});
}

/// A step takes the mean over its micro-batches, which is said where it makes a
/// difference.
static void warnOfMicroBatches(NodeContext &n, StringRef what) {
  n.graph.warn(("node '" + n.getLabel() + "' " + what +
                ": a step takes the mean over its micro-batches")
                   .str());
}

static Value reduceLoss(NodeContext &n, const Loss &loss, Value losses,
                        Value weights) {
  if (loss.reduction == "none")
    return n.b.reshape(losses, n.shape(1));
  if (loss.reduction == "sum") {
    warnOfMicroBatches(n, "adds up the losses of each micro-batch");
    return n.b.reduce<nn::ReduceSumOp>(losses, {0}, /*keepDims=*/false);
  }
  if (!n.hasInput(2) && !loss.ignored)
    return n.b.reduce<nn::ReduceMeanOp>(losses, {0}, /*keepDims=*/false);
  warnOfMicroBatches(n, "divides by the weights of each micro-batch's labels, "
                        "not of the whole batch's");
  return weightedMean(n, losses, weights);
}

/// The loss of log probabilities, or of anything, with the classes last. The
/// lookup of class weights, if only of ones, refuses labels that are no class.
static LogicalResult importPickedLoss(NodeContext &n, const Loss &loss,
                                      Value x) {
  Value labels = x ? n.value(1) : Value();
  if (!labels)
    return failure();
  int64_t rows = elementCount(n.shape(1)), classes = n.shape(0)[1];
  if (failed(n.expectComputable({classes})))
    return failure();
  labels = n.b.reshape(labels, {rows});
  Value isIgnored, zero = n.b.splat(0);
  if (loss.ignored) {
    Value number = n.made(ConstantTensor::scalar(*loss.ignored), ".ignored");
    Value first = n.made(ConstantTensor::scalar(int64_t(0)), ".first");
    isIgnored = n.b.compare(labels, number, nn::ComparePredicate::Eq);
    labels = n.b.create<nn::WhereOp>({isIgnored, first, labels});
  }
  Value table = classWeights(n, classes);
  if (!table)
    return failure();
  Value weights =
      n.b.reshape(n.b.create<nn::EmbeddingOp>({table, labels}), {rows});
  Value picked = pick(n, n.b.reshape(x, {rows, classes}), labels);
  Value losses =
      n.b.create<nn::NegOp>(n.b.create<nn::MulOp>({picked, weights}));
  if (isIgnored) {
    losses = n.b.create<nn::WhereOp>({isIgnored, zero, losses});
    weights = n.b.create<nn::WhereOp>({isIgnored, zero, weights});
  }
  return n.setResult(0, reduceLoss(n, loss, losses, weights));
}

//===----------------------------------------------------------------------===//
// The operators
//===----------------------------------------------------------------------===//

/// Whether nn.softmax_cross_entropy computes the loss.
static bool isPlain(const NodeContext &n, const Loss &loss) {
  return loss.reduction == "mean" && !n.hasInput(2);
}

static LogicalResult importCrossEntropy(NodeContext &n, const Loss &loss,
                                        Value logits) {
  if (!logits)
    return failure();
  return n.setResult(0,
                     buildCrossEntropy(n.b, classesLast(n, logits), n.value(1),
                                       loss.ignored.value_or(kNoIgnoredLabel)));
}

static LogicalResult importSoftmaxCrossEntropyLoss(NodeContext &n) {
  FailureOr<Loss> loss = readLoss(n);
  if (failed(loss))
    return failure();
  Value logits = n.value(0);
  if (!logits)
    return failure();
  Value logProb;
  if (n.isOutputRead(1) || !isPlain(n, *loss))
    logProb = n.b.create<nn::LogSoftmaxOp>(classesLast(n, logits));
  if (n.isOutputRead(1) && failed(n.setResult(1, classesSecond(n, logProb))))
    return failure();
  return isPlain(n, *loss) ? importCrossEntropy(n, *loss, logits)
                           : importPickedLoss(n, *loss, logProb);
}

/// What `x` is the LogSoftmax over dimension 1 of; null if it is not.
static Value logitsOf(Value x) {
  int64_t last = int64_t(shapeOf(x).size()) - 1;
  Shape swap = llvm::to_vector<4>(llvm::seq<int64_t>(0, last + 1));
  std::swap(swap[1], swap[last]);
  auto back = x.getDefiningOp<nn::TransposeOp>();
  if (last > 1 && (!back || back.getPermutation() != ArrayRef(swap)))
    return Value();
  auto softmax = (last > 1 ? back.getX() : x).getDefiningOp<nn::LogSoftmaxOp>();
  if (!softmax || last == 1)
    return softmax ? softmax.getX() : Value();
  auto there = softmax.getX().getDefiningOp<nn::TransposeOp>();
  return there && there.getPermutation() == ArrayRef(swap) ? there.getX()
                                                           : Value();
}

/// The plain loss of log probabilities is cross entropy of what they came from.
static LogicalResult importNegativeLogLikelihoodLoss(NodeContext &n) {
  FailureOr<Loss> loss = readLoss(n);
  if (failed(loss))
    return failure();
  Value x = n.value(0);
  if (!x)
    return failure();
  if (Value logits = isPlain(n, *loss) ? logitsOf(x) : Value())
    return importCrossEntropy(n, *loss, logits);
  return importPickedLoss(n, *loss, classesLast(n, x));
}

ArrayRef<OpRow> lossOps() {
  static const OpRow rows[] = {
      {"SoftmaxCrossEntropyLoss", 12, between(2, 3),
       importSoftmaxCrossEntropyLoss},
      {"NegativeLogLikelihoodLoss", 12, between(2, 3),
       importNegativeLogLikelihoodLoss},
  };
  return rows;
}

} // namespace pipewright::frontend
