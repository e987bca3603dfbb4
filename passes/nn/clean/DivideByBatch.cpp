//===- DivideByBatch.cpp - nn-divide-by-batch -----------------------------===//
//
// Which labels reach a loss is found by sending their positions the same way:
// an op that only moves elements does with them what it does with labels.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/nn/clean/ConstantFolding.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNDIVIDEBYBATCH
#include "passes/nn/Passes.h.inc"

namespace {

/// Where the labels of a loss come from: the positions in `argument` of all
/// its labels.
struct LabelPath {
  BlockArgument argument;
  SmallVector<int64_t> positions;
};

struct DivideByBatch : impl::NNDivideByBatchBase<DivideByBatch> {
  void runOnOperation() override;

private:
  void divide(func::FuncOp model, SoftmaxCrossEntropyOp loss);
  /// The argument for such a number, which may be there already.
  Value argumentFor(func::FuncOp model, const CountedInput &counted,
                    Location location);
};

} // namespace

/// The first op on the way from an argument that computes instead of moving;
/// null where there is none.
static Operation *findComputation(Value labels) {
  while (Operation *op = labels.getDefiningOp()) {
    if (!isa<ReshapeOp, SliceOp, TransposeOp>(op))
      return op;
    labels = op->getOperand(0);
  }
  return nullptr;
}

/// Whether an argument of the function is among what `op` computes from.
static bool readsInput(Operation *op) {
  llvm::SetVector<Operation *> slice;
  slice.insert(op);
  for (size_t i = 0; i < slice.size(); ++i)
    for (Value operand : slice[i]->getOperands()) {
      if (isa<BlockArgument>(operand))
        return true;
      slice.insert(operand.getDefiningOp());
    }
  return false;
}

/// The way of labels from an input to the loss, as long as ops only move them.
static LabelPath pathOf(Value labels) {
  SmallVector<Operation *> moves;
  while (Operation *op = labels.getDefiningOp()) {
    moves.push_back(op);
    labels = op->getOperand(0);
  }
  auto type = cast<RankedTensorType>(labels.getType());
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
  if (shape.empty())
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

Value DivideByBatch::argumentFor(func::FuncOp model,
                                 const CountedInput &counted,
                                 Location location) {
  llvm::StringSet<> names;
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (auto name = model.getArgAttrOfType<StringAttr>(i, "nn.name")) {
      std::optional<CountedInput> known = countedInput(getOperation(), name);
      if (known && known->labels == counted.labels &&
          known->ignored == counted.ignored && known->ranges == counted.ranges)
        return model.getArgument(i);
      names.insert(name);
    }
  std::string name = counted.labels + "_divisor";
  for (int number = 2; names.contains(name); ++number)
    name = counted.labels + "_divisor" + std::to_string(number);

  Builder b(&getContext());
  unsigned position = model.getNumArguments();
  auto attributes =
      b.getDictionaryAttr(b.getNamedAttr("nn.name", b.getStringAttr(name)));
  if (failed(model.insertArgument(
          position, RankedTensorType::get({}, b.getF32Type()), attributes,
          NameLoc::get(b.getStringAttr(name)))))
    return Value();
  setCountedInput(getOperation(), name, counted);
  return model.getArgument(position);
}

void DivideByBatch::divide(func::FuncOp model, SoftmaxCrossEntropyOp loss) {
  if (Operation *computation = findComputation(loss.getLabels())) {
    if (readsInput(computation))
      loss.emitWarning("divides by the labels of each micro-batch that are "
                       "not ignored, not by those of the whole batch: its "
                       "labels are computed by '")
          << computation->getName()
          << "', so they cannot be counted before the step; give the labels "
             "as the loss needs them";
    return;
  }
  LabelPath path = pathOf(loss.getLabels());
  std::optional<SmallVector<int64_t>> ranges;
  StringAttr name;
  if (path.argument) {
    name = model.getArgAttrOfType<StringAttr>(path.argument.getArgNumber(),
                                              "nn.name");
    ranges = rangesOf(path);
  }
  if (!ranges || !name) {
    loss.emitWarning("divides by the labels of each micro-batch that are not "
                     "ignored, not by those of the whole batch: it does not "
                     "read the same labels of each sample");
    return;
  }
  auto ignored = static_cast<int64_t>(loss.getIgnoreIndex());
  if (Value divisor =
          argumentFor(model, {name.str(), ignored, *ranges}, loss.getLoc()))
    loss.getDivisorMutable().assign(divisor);
}

void DivideByBatch::runOnOperation() {
  for (auto model : getOperation().getOps<func::FuncOp>()) {
    if (model.isExternal())
      continue;
    SmallVector<SoftmaxCrossEntropyOp> losses;
    for (auto loss : model.getOps<SoftmaxCrossEntropyOp>())
      if (!loss.getDivisor())
        losses.push_back(loss);
    for (SoftmaxCrossEntropyOp loss : losses)
      divide(model, loss);
  }
}

} // namespace pipewright::nn
