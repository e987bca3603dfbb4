//===- PadVocabulary.cpp - nn-pad-vocabulary ------------------------------===//
//
// From each loss back to the product that made its logits. What else reads the
// product gets the columns that there were before.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNPADVOCABULARY
#include "passes/nn/Passes.h.inc"

namespace {

/// The last layer of a classifier with many classes.
struct Head {
  SoftmaxCrossEntropyOp loss;
  /// From the loss back to the product.
  SmallVector<ReshapeOp> views;
  MatmulOp product;
  WeightOp weight;
};

class NNPadVocabulary : public impl::NNPadVocabularyBase<NNPadVocabulary> {
public:
  using NNPadVocabularyBase::NNPadVocabularyBase;

  void runOnOperation() override;

private:
  std::optional<Head> findHead(SoftmaxCrossEntropyOp loss);
  bool mayGrow(WeightOp weight);
  void pad(Head &head);
};

} // namespace

static RankedTensorType withLast(Type type, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape.back() = size;
  return tensor.clone(shape);
}

/// Whether all that reads the weight can do with more rows: tables of
/// embeddings, whose indices stay below, and products that make more columns.
bool NNPadVocabulary::mayGrow(WeightOp weight) {
  int heads = 0;
  bool fits = true;
  getOperation().walk([&](ParameterOp read) {
    if (read.getWeight() != weight.getSymName())
      return;
    for (OpOperand &use : read->getUses()) {
      auto product = dyn_cast<MatmulOp>(use.getOwner());
      if (product && use.getOperandNumber() == 1 && product.getTransposeB())
        ++heads;
      else
        fits &= isa<EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 0;
    }
  });
  return fits && heads == 1;
}

std::optional<Head> NNPadVocabulary::findHead(SoftmaxCrossEntropyOp loss) {
  Head head{loss, {}, {}, {}};
  int64_t classes = loss.getLogits().getType().getDimSize(1);
  if (classes < leastClasses || classes % multiple == 0 || loss.getClasses())
    return std::nullopt;
  Value value = loss.getLogits();
  while (auto view = value.getDefiningOp<ReshapeOp>()) {
    head.views.push_back(view);
    value = view.getX();
    if (tensorOf(value).getRank() == 0 ||
        tensorOf(value).getShape().back() != classes)
      return std::nullopt;
  }
  head.product = value.getDefiningOp<MatmulOp>();
  auto read =
      head.product ? head.product.getB().getDefiningOp<ParameterOp>() : nullptr;
  if (!read)
    return std::nullopt;
  head.weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
      read, read.getWeightAttr());
  if (head.weight.getRole() != WeightRole::Parameter ||
      head.weight.getTensorType().getRank() != 2 || !mayGrow(head.weight))
    return std::nullopt;
  return head;
}

/// The first columns, as many as `before` had, for all other readers.
static void sliceForOthers(OpBuilder &builder, Value value, Operation *reader,
                           RankedTensorType before) {
  auto isOther = [&](OpOperand &use) { return use.getOwner() != reader; };
  if (llvm::none_of(value.getUses(), isOther))
    return;
  builder.setInsertionPointAfterValue(value);
  SmallVector<int64_t> starts(before.getRank(), 0), steps(before.getRank(), 1);
  auto slice = SliceOp::create(builder, value.getLoc(), value, starts,
                               before.getShape(), steps);
  value.replaceUsesWithIf(slice.getResult(), [&](OpOperand &use) {
    return isOther(use) && use.getOwner() != slice;
  });
}

void NNPadVocabulary::pad(Head &head) {
  int64_t classes = head.loss.getLogits().getType().getDimSize(1);
  int64_t padded = llvm::alignTo(classes, multiple);
  OpBuilder builder(&getContext());
  RankedTensorType before = head.weight.getTensorType();
  RankedTensorType after = before.clone({padded, before.getDimSize(1)});
  head.weight.setTypeAttr(TypeAttr::get(after));
  head.weight.setFileRows(classes);
  getOperation().walk([&](ParameterOp read) {
    if (read.getWeight() == head.weight.getSymName())
      read.getResult().setType(after);
  });

  Operation *reader = head.loss;
  auto widen = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    value.setType(withLast(type, padded));
    sliceForOthers(builder, value, reader, type);
  };
  for (ReshapeOp view : head.views) {
    widen(view.getResult());
    reader = view;
  }
  widen(head.product.getResult());
  head.loss.setClasses(classes);
}

void NNPadVocabulary::runOnOperation() {
  if (multiple < 1) {
    getOperation().emitError("nn-pad-vocabulary expects a multiple of at least "
                             "1, but got ")
        << int64_t(multiple);
    return signalPassFailure();
  }
  SmallVector<SoftmaxCrossEntropyOp> losses;
  getOperation().walk(
      [&](SoftmaxCrossEntropyOp loss) { losses.push_back(loss); });
  for (SoftmaxCrossEntropyOp loss : losses)
    if (std::optional<Head> head = findHead(loss))
      pad(*head);
}

} // namespace pipewright::nn
