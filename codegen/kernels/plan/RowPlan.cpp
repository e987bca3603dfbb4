//===- RowPlan.cpp - which loop nest computes which tensor ----------------===//

#include "codegen/kernels/plan/RowPlan.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// Rows longer than this are computed again instead of being kept on the stack.
static constexpr int64_t kMaxRowTemporary = 16384;

/// Reductions are cut into rows of at most this length where the shape permits.
static constexpr int64_t kMaxReducedColumns = 65536;

static ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

bool isPointwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0;
}

linalg::GenericOp Root::reduction() const {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  return op && !isPointwise(op) ? op : nullptr;
}

Value stripViews(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      break;
    tensor = op->getOperand(0);
  }
  return tensor;
}

Index mapIndex(AffineExpr expr, ArrayRef<Index> loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  SmallVector<AffineExpr> dims = llvm::map_to_vector(
      loops, [](const Index &index) { return index.expr(); });
  return {expr.replaceDims(dims), {}, 0};
}

SmallVector<Index> sliceIndices(tensor::ExtractSliceOp slice,
                                ArrayRef<Index> indices) {
  SmallVector<Index> result;
  ArrayRef<int64_t> source = slice.getSourceType().getShape();
  for (auto [i, index] : llvm::enumerate(indices)) {
    int64_t offset = slice.getStaticOffset(i);
    int64_t stride = slice.getStaticStride(i);
    if (offset == 0 && stride == 1 && slice.getStaticSize(i) == source[i])
      result.push_back(index);
    else
      result.push_back({index.expr() * stride + offset, {}, 0});
  }
  return result;
}

const Root *RowPlan::rootOf(Value tensor) const {
  auto it = rootIndex.find(tensor);
  return it == rootIndex.end() ? nullptr : &roots[it->second];
}

AffineExpr RowPlan::row(const Nest &nest) const {
  return nest.rows == 1 ? getAffineConstantExpr(0, context)
                        : getAffineDimExpr(0, context);
}

AffineExpr RowPlan::column(const Nest &nest) const {
  return nest.columns == 1 ? getAffineConstantExpr(0, context)
                           : getAffineDimExpr(1, context);
}

AffineExpr RowPlan::element(const Nest &nest) const {
  return row(nest) * nest.columns + column(nest);
}

/// The shape that a root is computed over.
static SmallVector<int64_t> domainOf(const Root &root) {
  if (linalg::GenericOp op = root.reduction())
    return op.getStaticLoopRanges();
  return llvm::to_vector(shapeOf(root.tensor));
}

std::optional<unsigned> findCut(ArrayRef<int64_t> shape, int64_t columns) {
  int64_t behind = 1;
  for (unsigned cut = shape.size();; --cut) {
    // Leading ones belong to the rows.
    if (behind == columns)
      return cut;
    if (cut == 0)
      return std::nullopt;
    behind *= shape[cut - 1];
  }
}

std::optional<SmallVector<Index>> RowPlan::indicesOf(const Root &root,
                                                     const Nest &nest) const {
  SmallVector<int64_t> domain = domainOf(root);
  int64_t elements = llvm::product_of(domain);
  if (elements != nest.elements) {
    if (root.reduction() || elements != nest.rows)
      return std::nullopt;
    return split(row(nest), domain);
  }
  std::optional<unsigned> cut = findCut(domain, nest.columns);
  if (!cut)
    return std::nullopt;
  SmallVector<Index> indices =
      split(row(nest), ArrayRef(domain).take_front(*cut));
  llvm::append_range(indices,
                     split(column(nest), ArrayRef(domain).drop_front(*cut)));
  return indices;
}

std::optional<RootKind> RowPlan::classify(const Root &root,
                                          const Nest &nest) const {
  linalg::GenericOp op = root.reduction();
  if (!op) {
    int64_t elements = llvm::product_of(shapeOf(root.tensor));
    return elements == nest.elements ? RootKind::Element : RootKind::RowScalar;
  }
  SmallVector<int64_t> domain = domainOf(root);
  std::optional<unsigned> cut = findCut(domain, nest.columns);
  if (!cut)
    return std::nullopt;
  bool rowsReduced = false, columnsReduced = false, columnsKept = false;
  for (auto [i, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (domain[i] == 1)
      continue;
    bool reduced = type == utils::IteratorType::reduction;
    if (i < *cut)
      rowsReduced |= reduced;
    else
      (reduced ? columnsReduced : columnsKept) = true;
  }
  if (columnsReduced && columnsKept)
    return std::nullopt;
  if (columnsReduced || nest.columns == 1)
    return rowsReduced ? RootKind::RowAccumulation : RootKind::RowReduction;
  return RootKind::ElementAccumulation;
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

void RowPlan::assignNest(Root root) {
  SmallVector<int64_t> domain = domainOf(root);
  auto place = [&](unsigned nest) {
    root.nest = nest;
    if (!rootIndex.count(root.tensor))
      rootIndex[root.tensor] = roots.size();
    roots.push_back(root);
  };
  for (auto [i, nest] : llvm::enumerate(nests)) {
    SmallVector<int64_t> kept;
    for (int64_t columns : nest.candidates) {
      Nest shape = nest;
      shape.columns = columns;
      shape.rows = nest.elements / columns;
      if (probe(root, i, shape))
        kept.push_back(columns);
    }
    if (kept.empty())
      continue;
    nest.candidates = std::move(kept);
    return place(i);
  }
  Nest nest;
  nest.elements = llvm::product_of(domain);
  int64_t columns = 1;
  SmallVector<int64_t> cuts;
  for (int64_t size : llvm::reverse(domain)) {
    columns *= size;
    if (cuts.empty() || cuts.back() != columns)
      cuts.push_back(columns);
  }
  if (cuts.empty())
    cuts.push_back(1);
  for (int64_t candidate : llvm::reverse(cuts)) {
    nest.columns = candidate;
    nest.rows = nest.elements / candidate;
    if (probe(root, nests.size(), nest))
      nest.candidates.push_back(candidate);
  }
  // Walking single columns and dividing is always possible, only slow.
  if (nest.candidates.empty())
    nest.candidates.push_back(cuts.front());
  nests.push_back(nest);
  place(nests.size() - 1);
}

void RowPlan::chooseColumns() {
  for (auto [i, nest] : llvm::enumerate(nests)) {
    nest.columns = nest.candidates.front();
    // Sums of sums round less than one very long sum.
    bool reduces = llvm::any_of(roots, [i = i](const Root &root) {
      return root.nest == i && root.reduction();
    });
    for (int64_t candidate : nest.candidates)
      if (reduces && nest.columns > kMaxReducedColumns)
        nest.columns = candidate;
    nest.rows = nest.elements / nest.columns;
  }
  readLater.clear();
  for (Nest &nest : nests)
    nest.strided = false;
  for (Root &root : roots) {
    Nest &nest = nests[root.nest];
    root.kind = *classify(root, nest);
    root.pass = probe(root, root.nest, nest).value_or(0);
    nest.passes = std::max(nest.passes, root.pass + 1);
  }
}

/// True if computing `op` once more costs more than a load.
static bool isExpensive(linalg::GenericOp op) {
  return op.getRegion()
      .walk([](Operation *inner) {
        return isa<math::ExpOp, math::ExpM1Op, math::ErfOp, math::TanhOp,
                   math::LogOp, math::Log1pOp, math::PowFOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void RowPlan::addRowTemporaries() {
  for (unsigned n = 0; n < nests.size(); ++n) {
    if (nests[n].passes < 2 || nests[n].columns > kMaxRowTemporary)
      continue;
    while (true) {
      llvm::MapVector<Operation *, std::pair<unsigned, unsigned>> uses;
      for (const Root &root : roots) {
        if (root.nest != n || root.kind == RootKind::RowScalar)
          continue;
        Walk walk{n, nests[n]};
        walk.currentPass = root.pass;
        probe(root, n, nests[n], &walk);
        for (Value tensor : walk.elements) {
          Operation *op = tensor.getDefiningOp();
          auto [it, isNew] = uses.insert({op, {root.pass, root.pass}});
          it->second.first = std::min(it->second.first, root.pass);
          it->second.second = std::max(it->second.second, root.pass);
        }
      }
      // The last such op: keeping it may save all that it is made from.
      Operation *best = nullptr;
      for (auto [op, range] : uses)
        if (range.first != range.second && !rootIndex.count(op->getResult(0)) &&
            isExpensive(cast<linalg::GenericOp>(op)) &&
            (!best || best->isBeforeInBlock(op)))
          best = op;
      if (!best)
        break;
      Root root;
      root.tensor = best->getResult(0);
      root.nest = n;
      root.pass = uses[best].first;
      root.rowTemporary = true;
      rootIndex[root.tensor] = roots.size();
      roots.push_back(root);
    }
  }
}

void RowPlan::findReadAgain() {
  llvm::MapVector<std::pair<unsigned, Value>, unsigned> firstPass;
  for (const Root &root : roots) {
    Nest &nest = nests[root.nest];
    Walk walk{root.nest, nest};
    walk.currentPass = root.pass;
    probe(root, root.nest, nest, &walk);
    for (Value argument : walk.arguments) {
      auto [first, isNew] =
          firstPass.insert({{root.nest, argument}, root.pass});
      if (first->second != root.pass &&
          !llvm::is_contained(nest.readAgain, argument))
        nest.readAgain.push_back(argument);
    }
  }
}

LogicalResult RowPlan::build(func::FuncOp func) {
  context = func.getContext();
  Operation *terminator = func.getBody().front().getTerminator();
  DenseMap<Value, int> results;
  SmallVector<std::pair<Value, int>> copies;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    Value base = stripViews(value);
    bool computed = base.getDefiningOp<linalg::GenericOp>() != nullptr;
    if (!computed || !results.insert({base, i}).second)
      copies.push_back({value, i});
  }
  for (Operation &op : func.getBody().front()) {
    if (!isa<linalg::GenericOp, linalg::FillOp, tensor::EmptyOp,
             tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::ExtractSliceOp>(op) &&
        !op.hasTrait<OpTrait::ConstantLike>() && &op != terminator)
      return op.emitOpError("is not understood by kernel fusion");
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    if (op.getNumResults() != 1)
      return op.emitOpError("expects one result in a kernel, but got ")
             << op.getNumResults();
    auto result = results.find(op.getResult(0));
    if (isPointwise(generic) && result == results.end())
      continue;
    if (op.use_empty())
      continue;
    Root root;
    root.tensor = op.getResult(0);
    root.result = result == results.end() ? -1 : result->second;
    assignNest(root);
  }
  for (auto [value, result] : copies) {
    Root root;
    root.tensor = value;
    root.result = result;
    assignNest(root);
  }
  chooseColumns();
  addRowTemporaries();
  findReadAgain();
  for (Root &root : roots)
    root.stored = !root.rowTemporary &&
                  (root.result >= 0 || readLater.contains(root.tensor) ||
                   root.kind == RootKind::RowAccumulation ||
                   root.kind == RootKind::ElementAccumulation);
  return success();
}

} // namespace pipewright::codegen
