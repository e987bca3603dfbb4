//===- Loss.cpp - Losses inside the model ---------------------------------===//
//
// ONNX puts the classes in dimension 1; nn wants them last and the rest flat.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/LossBuilder.h"
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

static LogicalResult importCrossEntropy(NodeContext &n, Value logits) {
  std::string reduction = n.stringAttribute("reduction", "mean");
  int64_t ignored = n.intAttribute("ignore_index", kNoIgnoredLabel);
  if (!logits)
    return failure();
  if (n.hasInput(2))
    return n.error() << "class weights are not supported";
  if (reduction != "mean")
    return n.error() << "reduction=" << reduction
                     << " is not supported, only mean is";
  return n.setResult(
      0, buildCrossEntropy(n.b, classesLast(n, logits), n.value(1), ignored));
}

static LogicalResult importSoftmaxCrossEntropyLoss(NodeContext &n) {
  if (n.rank(0) < 2)
    return n.error() << "expects scores of rank 2 or more, but got rank "
                     << n.rank(0);
  Value logits = n.value(0);
  if (n.isOutputRead(1)) {
    if (!logits || n.rank(0) != 2)
      return n.error() << "log_prob is supported for rank 2 only";
    if (failed(n.setResult(1, n.b.create<nn::LogSoftmaxOp>(logits))))
      return failure();
  }
  return importCrossEntropy(n, logits);
}

/// The loss of log probabilities is cross entropy of what they came from.
static LogicalResult importNegativeLogLikelihoodLoss(NodeContext &n) {
  Value x = n.value(0);
  if (!x)
    return failure();
  if (n.rank(0) == 2)
    if (auto softmax = x.getDefiningOp<nn::LogSoftmaxOp>())
      return importCrossEntropy(n, softmax.getX());
  return n.error() << "expects its input to be a LogSoftmax over the classes";
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
