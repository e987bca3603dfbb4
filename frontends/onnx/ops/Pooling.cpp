//===- Pooling.cpp - Pooling ----------------------------------------------===//
//
// Local pooling through one window form; global pooling is a reduction.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Window.h"

using namespace mlir;

namespace pipewright::frontend {

static LogicalResult importMaxPool(NodeContext &n) {
  if (n.intAttribute("storage_order", 0) != 0)
    return n.error() << "storage_order=1 is not supported";
  if (failed(n.expectUnread(1)))
    return failure();
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  Value y = n.b.create<nn::MaxPoolOp>(
      asImage(n, n.value(0)),
      {n.b.ints("kernel", window->kernel), n.b.ints("strides", window->strides),
       n.b.ints("pads", window->pads),
       n.b.ints("dilations", window->dilations)});
  return n.setResult(0, fromImage(n, y));
}

static LogicalResult importAveragePool(NodeContext &n) {
  bool countPads = n.intAttribute("count_include_pad", 0);
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  if (llvm::any_of(window->dilations, [](int64_t d) { return d != 1; }))
    return n.error() << "dilations other than 1 are not supported";
  // The pads that ceil mode adds are never counted, which nn cannot say.
  if (countPads && window->enlarged)
    return n.error() << "ceil_mode=1 with count_include_pad=1 is not supported "
                        "for this input size";
  SmallVector<NamedAttribute> attrs = {n.b.ints("kernel", window->kernel),
                                       n.b.ints("strides", window->strides),
                                       n.b.ints("pads", window->pads)};
  if (countPads)
    attrs.push_back(n.b.unit("count_include_pad"));
  Value y = n.b.create<nn::AveragePoolOp>(asImage(n, n.value(0)), attrs);
  return n.setResult(0, fromImage(n, y));
}

template <typename OpTy>
static LogicalResult importGlobalPool(NodeContext &n) {
  if (n.rank(0) < 3)
    return n.error() << "expects rank 3 or more, but got " << n.rank(0);
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(2, n.rank(0)));
  return n.setResult(0, n.b.reduce<OpTy>(n.value(0), axes, /*keepDims=*/true));
}

ArrayRef<OpRow> poolingOps() {
  static const OpRow rows[] = {
      {"MaxPool", 7, exactly(1), importMaxPool},
      {"AveragePool", 7, exactly(1), importAveragePool},
      {"GlobalAveragePool", 7, exactly(1), importGlobalPool<nn::ReduceMeanOp>},
      {"GlobalMaxPool", 7, exactly(1), importGlobalPool<nn::ReduceMaxOp>},
  };
  return rows;
}

} // namespace pipewright::frontend
