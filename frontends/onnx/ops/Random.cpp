//===- Random.cpp - Dropout -----------------------------------------------===//
//
// Each dropout gets a number of its own, which keys its random stream.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

using namespace mlir;

namespace pipewright::frontend {

/// Up to opset 11 the op has no mode: it is dropout when a program trains.
/// Since opset 12 rate and mode are inputs.
static LogicalResult importDropout(NodeContext &n) {
  n.intAttribute("seed", 0);
  if (failed(n.expectUnread(1)))
    return failure();
  float rate = 0.5f;
  bool training = true;
  if (n.opset < 12) {
    rate = n.floatAttribute("ratio", 0.5f);
  } else {
    const ConstantTensor *ratio = n.constant(1), *mode = n.constant(2);
    if ((n.hasInput(1) && (!ratio || ratio->size() != 1)) ||
        (n.hasInput(2) && (!mode || mode->size() != 1)))
      return n.error() << "expects a constant ratio and training_mode";
    if (ratio)
      rate = ratio->convertTo(ElementKind::Float).floatAt(0);
    training = mode && mode->convertTo(ElementKind::Bool).boolAt(0);
  }
  if (!training && !n.graph.trainDropout) {
    n.graph.inferenceDropouts += rate > 0;
    return n.forward(0, 0);
  }
  ++n.graph.activeDropouts;
  if (rate == 0)
    return n.forward(0, 0);
  return n.setResult(
      0, n.b.create<nn::DropoutOp>(
             n.value(0), {n.b.real("rate", rate),
                          n.b.integer("id", n.graph.nextDropoutId++)}));
}

ArrayRef<OpRow> randomOps() {
  static const OpRow rows[] = {
      {"Dropout", 7, between(1, 3), importDropout},
  };
  return rows;
}

} // namespace pipewright::frontend
