//===- CountedLabels.cpp - Which labels of an input a loss reads ----------===//
//
// Which labels reach a loss is found by sending their positions the same way:
// an op that only moves elements does with them what it does with labels.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/CountedLabels.h"
#include "dialects/nn/NNAttributeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/nn/clean/ConstantFolding.h"

#include <numeric>

using namespace mlir;

namespace pipewright::nn {

namespace {

/// Where the labels of a loss come from: the positions in `argument` of all
/// its labels.
struct LabelPath {
  BlockArgument argument;
  SmallVector<int64_t> positions;
};

} // namespace

Operation *findLabelComputation(SoftmaxCrossEntropyOp loss) {
  Value labels = loss.getLabels();
  while (Operation *op = labels.getDefiningOp()) {
    if (!isa<ReshapeOp, SliceOp, TransposeOp>(op))
      return op;
    labels = op->getOperand(0);
  }
  return nullptr;
}

/// The way of labels from an input to the loss, where ops only move them.
static LabelPath pathOf(Value labels) {
  SmallVector<Operation *> moves;
  while (Operation *op = labels.getDefiningOp()) {
    moves.push_back(op);
    labels = op->getOperand(0);
  }
  auto type = cast<RankedTensorType>(labels.getType());
  // Positions take as much memory as the labels themselves.
  constexpr int64_t maxLabels = int64_t(1) << 26;
  if (type.getNumElements() > maxLabels)
    return {};
  SmallVector<int64_t> iota(type.getNumElements());
  std::iota(iota.begin(), iota.end(), 0);
  auto values = DenseElementsAttr::get(type, ArrayRef(iota));
  for (Operation *move : llvm::reverse(moves)) {
    auto result = cast<RankedTensorType>(move->getResult(0).getType());
    values = isa<ReshapeOp>(move)
                 ? values.reshape(result)
                 : evaluateOnConstants(move, values, type.getNumElements());
    if (!values)
      return {};
  }
  return {cast<BlockArgument>(labels),
          llvm::to_vector(values.getValues<int64_t>())};
}

/// The elements of each row of the argument that are among the positions; none
/// if rows differ, or an element occurs twice.
static std::optional<SmallVector<int64_t>> rangesOf(LabelPath path) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(path.argument.getType()).getShape();
  if (shape.empty() || shape[0] == 0)
    return std::nullopt;
  int64_t rows = shape[0], width = llvm::product_of(shape.drop_front());
  llvm::sort(path.positions);
  int64_t perRow = path.positions.size() / rows;
  if (perRow * rows != static_cast<int64_t>(path.positions.size()))
    return std::nullopt;
  SmallVector<int64_t> ranges;
  for (auto [i, position] : llvm::enumerate(path.positions)) {
    int64_t row = i / perRow, element = position - row * width;
    if (row > 0) {
      if (element != path.positions[i % perRow])
        return std::nullopt;
      continue;
    }
    if (element >= width || (!ranges.empty() && element < ranges.back()))
      return std::nullopt;
    if (ranges.empty() || ranges.back() != element)
      ranges.append({element, element});
    ++ranges.back();
  }
  return ranges;
}

std::optional<CountedInput> countedLabelsOf(SoftmaxCrossEntropyOp loss) {
  auto model = dyn_cast<func::FuncOp>(loss->getParentOp());
  if (!model || findLabelComputation(loss))
    return std::nullopt;
  LabelPath path = pathOf(loss.getLabels());
  if (!path.argument)
    return std::nullopt;
  auto name = model.getArgAttrOfType<StringAttr>(path.argument.getArgNumber(),
                                                 nn::kName);
  std::optional<SmallVector<int64_t>> ranges = rangesOf(std::move(path));
  if (!name || !ranges)
    return std::nullopt;
  return CountedInput{name.str(), static_cast<int64_t>(loss.getIgnoreIndex()),
                      *ranges};
}

} // namespace pipewright::nn
