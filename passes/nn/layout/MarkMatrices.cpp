//===- MarkMatrices.cpp - nn-mark-matrices --------------------------------===//
//
// Which weights Muon takes as matrices. Its authors leave out embeddings, which
// are no maps, and the last layer, whose outputs are compared with labels.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWeightNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNMARKMATRICES
#include "passes/nn/Passes.h.inc"

namespace {

/// What is known of the reads of a weight.
struct Reads {
  /// Where its products have their outputs; the first one decides.
  std::optional<MatrixOutputs> outputs;
  bool areProducts = true;
  bool areLast = false;
};

class MarkMatrices : public impl::NNMarkMatricesBase<MarkMatrices> {
public:
  using NNMarkMatricesBase::NNMarkMatricesBase;

  void runOnOperation() override {
    findLast();
    getOperation().walk([&](ParameterOp read) {
      follow(read.getResult(), /*isTransposed=*/false, reads[nameOf(read)]);
    });
    if (failed(names.empty() ? markAll() : markNamed()))
      signalPassFailure();
  }

private:
  static StringRef nameOf(ParameterOp read) { return read.getWeight(); }

  void follow(Value value, bool isTransposed, Reads &found);
  void findLast();
  LogicalResult markAll();
  LogicalResult markNamed();

  llvm::MapVector<StringRef, Reads> reads;
  /// Products from which the loss is reached without another one.
  llvm::DenseSet<Operation *> lastProducts;
};

} // namespace

static bool canBeMatrix(WeightOp weight) {
  return weight.getRole() == WeightRole::Parameter && !weight.getFileRows() &&
         weight.getTensorType().getRank() == 2;
}

/// Looks at all that reads a weight, perhaps turned or in bf16.
void MarkMatrices::follow(Value value, bool isTransposed, Reads &found) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto cast = dyn_cast<CastOp>(user)) {
      follow(cast.getResult(), isTransposed, found);
    } else if (auto turn = dyn_cast<TransposeOp>(user);
               turn && turn.getPermutation() == ArrayRef<int64_t>{1, 0}) {
      follow(turn.getResult(), !isTransposed, found);
    } else if (auto product = dyn_cast<MatmulOp>(user)) {
      // y = x w has the outputs as columns of w, y = w x as its rows.
      bool isRight = use.getOperandNumber() == 1;
      bool isTurned = isTransposed != (isRight ? product.getTransposeB()
                                               : product.getTransposeA());
      if (!found.outputs)
        found.outputs =
            isRight == isTurned ? MatrixOutputs::Rows : MatrixOutputs::Columns;
      found.areLast |= lastProducts.contains(user);
    } else {
      found.areProducts = false;
    }
  }
}

/// Goes back from losses, or else from all results, to the first products that
/// read weights.
void MarkMatrices::findLast() {
  SmallVector<Value> toVisit;
  getOperation().walk(
      [&](SoftmaxCrossEntropyOp loss) { toVisit.push_back(loss.getLogits()); });
  if (toVisit.empty())
    getOperation().walk([&](func::ReturnOp results) {
      llvm::append_range(toVisit, results.getOperands());
    });
  llvm::DenseSet<Value> visited;
  while (!toVisit.empty()) {
    Value value = toVisit.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !visited.insert(value).second)
      continue;
    if (isa<MatmulOp>(op) && (!weightBehind(op->getOperand(0)).empty() ||
                              !weightBehind(op->getOperand(1)).empty()))
      lastProducts.insert(op);
    else
      llvm::append_range(toVisit, op->getOperands());
  }
}

LogicalResult MarkMatrices::markAll() {
  for (auto weight : getOperation().getOps<WeightOp>()) {
    auto found = reads.find(weight.getSymName());
    if (found == reads.end() || !canBeMatrix(weight))
      continue;
    const Reads &of = found->second;
    if (of.outputs && of.areProducts && !of.areLast)
      weight.setOutputs(of.outputs);
  }
  return success();
}

LogicalResult MarkMatrices::markNamed() {
  llvm::Regex pattern(names);
  if (std::string problem; !pattern.isValid(problem))
    return getOperation().emitError("nn-mark-matrices expects a regular "
                                    "expression, but got '")
           << names << "': " << problem;
  bool isUsed = false;
  for (auto weight : getOperation().getOps<WeightOp>()) {
    weight.removeOutputsAttr();
    if (!canBeMatrix(weight) || !pattern.match(fileNameOf(weight)))
      continue;
    isUsed = true;
    auto found = reads.find(weight.getSymName());
    bool isProduct = found != reads.end() && found->second.outputs;
    weight.setOutputs(isProduct ? *found->second.outputs : MatrixOutputs::Rows);
  }
  if (!isUsed)
    return getOperation().emitError("--matrices ")
           << names << " matches no matrix that is trained";
  return success();
}

} // namespace pipewright::nn
