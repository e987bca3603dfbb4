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
  /// Reshapes, and sums with a bias, on the way from the loss back to the
  /// product.
  SmallVector<Operation *> between;
  MatmulOp product;
  /// The weight of the product, and biases; each has a row for each class.
  SmallVector<WeightOp> weights;
};

class NNPadVocabulary : public impl::NNPadVocabularyBase<NNPadVocabulary> {
public:
  using NNPadVocabularyBase::NNPadVocabularyBase;

  void runOnOperation() override;

private:
  std::string findHead(Head &head);
  std::string addWeight(Head &head, Value value);
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
/// embeddings, whose indices stay below, and what makes more columns, once.
bool NNPadVocabulary::mayGrow(WeightOp weight) {
  int heads = 0;
  bool fits = true;
  getOperation().walk([&](ParameterOp read) {
    if (read.getWeight() != weight.getSymName())
      return;
    for (OpOperand &use : read->getUses()) {
      auto product = dyn_cast<MatmulOp>(use.getOwner());
      bool isBias =
          weight.getTensorType().getRank() == 1 && isa<AddOp>(use.getOwner());
      if (isBias ||
          (product && use.getOperandNumber() == 1 && product.getTransposeB()))
        ++heads;
      else
        fits &= isa<EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 0;
    }
  });
  return fits && heads == 1;
}

/// Adds the weight that `value` reads to those that get more rows; says why it
/// may not.
std::string NNPadVocabulary::addWeight(Head &head, Value value) {
  auto read = value.getDefiningOp<ParameterOp>();
  if (!read)
    return "they come from a product or a sum with something else than a "
           "weight";
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
      read, read.getWeightAttr());
  std::string named = ("weight '" + read.getWeight() + "' ").str();
  if (!weight.isLearned())
    return named + "is not a parameter, and only parameters can have other "
                   "sizes in files";
  if (!mayGrow(weight))
    return named + "is read by more than that layer and embeddings, which "
                   "would see the zeros";
  head.weights.push_back(weight);
  return "";
}

/// Follows the logits of `head.loss` back to the product; says what does not
/// let it.
std::string NNPadVocabulary::findHead(Head &head) {
  int64_t classes = head.loss.getLogits().getType().getDimSize(1);
  auto hasClasses = [&](Value value) {
    return tensorOf(value).getRank() > 0 &&
           tensorOf(value).getShape().back() == classes;
  };
  Value value = head.loss.getLogits();
  while (Operation *op = value.getDefiningOp()) {
    if (auto view = dyn_cast<ReshapeOp>(op)) {
      value = view.getX();
    } else if (auto sum = dyn_cast<AddOp>(op)) {
      bool isLeft = tensorOf(sum.getLhs()).getRank() == 1;
      Value bias = isLeft ? sum.getLhs() : sum.getRhs();
      value = isLeft ? sum.getRhs() : sum.getLhs();
      if (tensorOf(bias).getRank() != 1 || !hasClasses(bias))
        return "they are a sum with something else than a bias";
      if (std::string why = addWeight(head, bias); !why.empty())
        return why;
    } else {
      break;
    }
    if (!hasClasses(value))
      return "a reshape splits their classes";
    head.between.push_back(op);
  }
  head.product = value.getDefiningOp<MatmulOp>();
  if (!head.product)
    return "they do not come from a product, by reshapes and biases alone";
  auto read = head.product.getB().getDefiningOp<ParameterOp>();
  if (read && !head.product.getTransposeB())
    return ("weight '" + read.getWeight() +
            "' has the classes as its columns, and only rows can be added; "
            "export it as [classes, features] (Gemm with transB = 1)")
        .str();
  return addWeight(head, head.product.getB());
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
  for (WeightOp weight : head.weights) {
    SmallVector<int64_t> shape(weight.getTensorType().getShape());
    shape.front() = padded;
    RankedTensorType after = weight.getTensorType().clone(shape);
    weight.setTypeAttr(TypeAttr::get(after));
    weight.setFileRows(classes);
    getOperation().walk([&](ParameterOp read) {
      if (read.getWeight() == weight.getSymName())
        read.getResult().setType(after);
    });
  }

  Operation *reader = head.loss;
  auto widen = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    value.setType(withLast(type, padded));
    sliceForOthers(builder, value, reader, type);
  };
  for (Operation *op : head.between) {
    widen(op->getResult(0));
    reader = op;
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
  for (SoftmaxCrossEntropyOp loss : losses) {
    int64_t classes = loss.getLogits().getType().getDimSize(1);
    if (classes < leastClasses || classes % multiple == 0 || loss.getClasses())
      continue;
    Head head{loss, {}, {}, {}};
    if (std::string why = findHead(head); !why.empty())
      loss.emitRemark("its logits of ")
          << classes << " classes get no columns of zeros up to "
          << llvm::alignTo(classes, multiple) << ": " << why;
    else
      pad(head);
  }
}

} // namespace pipewright::nn
