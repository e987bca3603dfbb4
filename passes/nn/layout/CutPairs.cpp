//===- CutPairs.cpp - nn-cut-pairs ----------------------------------------===//
//
// Of two products with pointwise ops between them the first weight is cut into
// groups of columns, the second into groups of rows: each shard computes a part
// of what lies between, and the results are summed.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNCUTPAIRS
#include "passes/nn/Passes.h.inc"

namespace {

class NNCutPairs : public impl::NNCutPairsBase<NNCutPairs> {
public:
  using NNCutPairsBase::NNCutPairsBase;

  void runOnOperation() override;

private:
  WeightOp weightOf(Value value);
  bool cut(MatmulOp first);
  void shrink(Value value, int64_t dim);
  void shrinkWeight(Value read, int64_t dim);
};

} // namespace

/// The parameter that only this reads.
WeightOp NNCutPairs::weightOf(Value value) {
  auto read = value.getDefiningOp<ParameterOp>();
  if (!read || !read->hasOneUse())
    return {};
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
      read, read.getWeightAttr());
  int reads = 0;
  getOperation().walk([&](ParameterOp other) {
    reads += other.getWeight() == read.getWeight();
  });
  bool isWhole = !weight.getShard() && !weight.getFileRows();
  return reads == 1 && isWhole && weight.isLearned() ? weight : WeightOp();
}

void NNCutPairs::shrink(Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= shards;
  value.setType(type.clone(shape));
}

void NNCutPairs::shrinkWeight(Value read, int64_t dim) {
  WeightOp weight = weightOf(read);
  shrink(read, dim);
  weight.setTypeAttr(TypeAttr::get(read.getType()));
  weight.setShard(ArrayRef<int64_t>{dim, shards});
}

/// Whether `first` and the product behind it are a pair; then they are cut.
bool NNCutPairs::cut(MatmulOp first) {
  WeightOp columns = weightOf(first.getB());
  int64_t dim = first.getTransposeB() ? 0 : 1;
  if (!columns || columns.getTensorType().getRank() != 2 ||
      columns.getTensorType().getDimSize(dim) % shards != 0)
    return false;
  SmallVector<Value> between = {first.getResult()}, biases;
  MatmulOp second;
  while (!second) {
    if (!between.back().hasOneUse())
      return false;
    Operation *user = *between.back().user_begin();
    second = dyn_cast<MatmulOp>(user);
    if (second)
      break;
    if (auto sum = dyn_cast<AddOp>(user)) {
      Value bias = sum.getLhs() == between.back() ? sum.getRhs() : sum.getLhs();
      WeightOp weight = weightOf(bias);
      if (!weight || weight.getTensorType().getRank() != 1)
        return false;
      biases.push_back(bias);
    } else if (!isa<ReluOp, GeluOp, TanhOp>(user)) {
      return false;
    }
    between.push_back(user->getResult(0));
  }
  if (second.getA() != between.back() || second.getTransposeA() ||
      !weightOf(second.getB()))
    return false;

  shrinkWeight(first.getB(), dim);
  for (Value bias : biases)
    shrinkWeight(bias, 0);
  for (Value value : between)
    shrink(value, cast<RankedTensorType>(value.getType()).getRank() - 1);
  shrinkWeight(second.getB(), second.getTransposeB() ? 1 : 0);
  OpBuilder builder(first);
  auto input = AllReduceOp::create(builder, first.getLoc(), first.getA(),
                                   /*backward=*/true);
  first.getAMutable().assign(input);
  builder.setInsertionPointAfter(second);
  auto sum = AllReduceOp::create(builder, second.getLoc(), second.getResult(),
                                 /*backward=*/false);
  second.getResult().replaceAllUsesExcept(sum, sum);
  return true;
}

void NNCutPairs::runOnOperation() {
  SmallVector<MatmulOp> products;
  getOperation().walk([&](MatmulOp product) { products.push_back(product); });
  int64_t pairs = 0;
  for (MatmulOp product : products)
    pairs += cut(product);
  if (pairs)
    return;
  getOperation().emitError("has no two products that ")
      << shards << " shards could share, with pointwise ops between them";
  signalPassFailure();
}

} // namespace pipewright::nn
