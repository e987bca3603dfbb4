//===- DivideByBatch.cpp - nn-divide-by-batch -----------------------------===//
//
// The divisor of a loss is an argument of the model that the runtime counts.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNAttributeNames.h"
#include "passes/nn/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/nn/clean/CountedLabels.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNDIVIDEBYBATCH
#include "passes/nn/Passes.h.inc"

namespace {

struct DivideByBatch : impl::NNDivideByBatchBase<DivideByBatch> {
  void runOnOperation() override;

private:
  void divide(func::FuncOp model, SoftmaxCrossEntropyOp loss);
  /// The argument for such a number, which may be there already.
  Value argumentFor(func::FuncOp model, const CountedInput &counted,
                    Location location);
};

} // namespace

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

Value DivideByBatch::argumentFor(func::FuncOp model,
                                 const CountedInput &counted,
                                 Location location) {
  llvm::StringSet<> names;
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (auto name = model.getArgAttrOfType<StringAttr>(i, nn::kName)) {
      std::optional<CountedInput> known = countedInput(getOperation(), name);
      if (known == counted)
        return model.getArgument(i);
      names.insert(name);
    }
  std::string name = counted.labels + "_divisor";
  for (int number = 2; names.contains(name); ++number)
    name = counted.labels + "_divisor" + std::to_string(number);

  Builder b(&getContext());
  unsigned position = model.getNumArguments();
  auto attributes =
      b.getDictionaryAttr(b.getNamedAttr(nn::kName, b.getStringAttr(name)));
  if (failed(model.insertArgument(
          position, RankedTensorType::get({}, b.getF32Type()), attributes,
          NameLoc::get(b.getStringAttr(name)))))
    return Value();
  setCountedInput(getOperation(), name, counted);
  return model.getArgument(position);
}

void DivideByBatch::divide(func::FuncOp model, SoftmaxCrossEntropyOp loss) {
  if (Operation *computation = findLabelComputation(loss)) {
    if (readsInput(computation))
      loss.emitWarning("divides by the labels of each micro-batch that are "
                       "not ignored, not by those of the whole batch: its "
                       "labels are computed by '")
          << computation->getName()
          << "', so they cannot be counted before the step; give the labels "
             "as the loss needs them";
    return;
  }
  std::optional<CountedInput> counted = countedLabelsOf(loss);
  if (!counted) {
    loss.emitWarning("divides by the labels of each micro-batch that are not "
                     "ignored, not by those of the whole batch: it does not "
                     "read the same labels of each sample");
    return;
  }
  if (Value divisor = argumentFor(model, *counted, loss.getLoc()))
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
