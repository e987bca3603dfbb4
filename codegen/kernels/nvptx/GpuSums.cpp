//===- GpuSums.cpp - add up what blocks have left -------------------------===//
//
// The part of GpuEmitter that finishes sums over rows in a second launch.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// Threads of a block.
static constexpr int64_t kSumThreads = 256;

FailureOr<Value> GpuEmitter::initialValue(const Root &root, Value offset) {
  linalg::GenericOp op = root.reduction();
  Value init = op.getDpsInits()[0];
  if (isAdded(root) ||
      (buffers.lookup(init) && buffers.lookup(init) == bufferOf(root)))
    return Value(memref::LoadOp::create(b, loc, bufferOf(root), offset));
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Attribute start;
  if (!fill || !matchPattern(fill.value(), m_Constant(&start)))
    return op.emitOpError(
        "expects a constant or the result's own memory as initial value");
  if (start == neutralOf(combinerOf(op), elementOf(root)))
    return Value();
  return Value(arith::ConstantOp::create(b, loc, cast<TypedAttr>(start)));
}

/// Elements of a block that adds up partial sums.
static int64_t elementsPerBlock(const PartialSums &partial) {
  return std::min<int64_t>(32, llvm::PowerOf2Ceil(partial.elements));
}

LogicalResult GpuEmitter::emitSums(const Launch &launch) {
  int64_t grid = 0;
  for (const PartialSums &partial : launch.sums)
    grid += llvm::divideCeil(partial.elements, elementsPerBlock(partial));
  open(launch, grid, kSumThreads);
  Value shared = makeShared(kSumThreads, b.getF32Type());
  int64_t begin = 0;
  for (const PartialSums &partial : launch.sums) {
    int64_t perBlock = elementsPerBlock(partial);
    int64_t blocks = llvm::divideCeil(partial.elements, perBlock);
    OpBuilder outer = b;
    Value block = blockId;
    if (launch.sums.size() > 1) {
      // This is false for the blocks in front, too: their number wraps.
      block = arith::SubIOp::create(b, loc, blockId, constant(begin));
      b = scf::IfOp::create(b, loc, isBelow(block, blocks))
              .getThenBodyBuilder();
    }
    if (mlir::failed(emitPartialSum(launch, partial, block, shared, perBlock,
                                    kSumThreads / perBlock)))
      return failure();
    b = outer;
    begin += blocks;
  }
  return success();
}

/// Each of `groups` threads adds up every groups-th part of an element; then a
/// tree over the groups.
LogicalResult GpuEmitter::emitPartialSum(const Launch &launch,
                                         const PartialSums &partial,
                                         Value block, Value shared,
                                         int64_t elements, int64_t groups) {
  const Root &root = *partial.root;
  const Nest &nest = plan.nests[launch.nest];
  bool ofRows = root.kind == RootKind::RowAccumulation;
  Type element = elementOf(root);
  Value lane = rem(threadId, elements), group = div(threadId, elements);
  Value number = add(mul(block, elements), lane), valid;
  if (partial.elements % elements != 0) {
    valid = isBelow(number, partial.elements);
    number =
        arith::MinUIOp::create(b, loc, number, constant(partial.elements - 1));
  }
  Value buffer =
      makeBuffer(partial.offset, element, partial.count * partial.elements);
  AffineExpr d0 = getAffineDimExpr(0, context);
  AffineExpr d1 = getAffineDimExpr(1, context);
  AffineExpr position =
      ofRows ? partial.split.row(d0, d1) : d1 * partial.elements + d0;
  auto loop = scf::ForOp::create(b, loc, group, constant(partial.count),
                                 constant(groups), neutral(root));
  OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
  Value part = memref::LoadOp::create(
      inside, loc, buffer,
      evaluate(position, number, loop.getInductionVar(), inside));
  scf::YieldOp::create(inside, loc,
                       combine(root, loop.getRegionIterArg(0), part, inside));
  Value total = loop.getResult(0);
  for (int64_t half = groups / 2; half > 0; half /= 2) {
    // The first groups need it no more, the others are done.
    memref::StoreOp::create(b, loc, total, shared, threadId);
    gpu::BarrierOp::create(b, loc);
    Value partner = rem(add(threadId, constant(half * elements)), kSumThreads);
    Value other = memref::LoadOp::create(b, loc, shared, partner);
    gpu::BarrierOp::create(b, loc);
    total = combine(root, total, other, b);
  }
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, group,
                                        constant(0));
  OpBuilder outer = b;
  b = scf::IfOp::create(b, loc, both(isFirst, valid)).getThenBodyBuilder();
  Scope row(b);
  rowScope = &row;
  int64_t columns = ofRows ? 1 : nest.columns;
  setRow(row, evaluate(partial.split.row(d0, getAffineConstantExpr(0, context)),
                       div(number, columns), Value(), b));
  row.builder = b;
  Value column = rem(number, columns);
  row.builder = b;
  Scope inRow(b);
  if (nest.columns != 1)
    inRow.exprs[d1] = column;
  columnScope = &inRow;
  Value offset = rootOffset(root, *plan.indicesOf(root, nest), inRow);
  columnScope = nullptr;
  FailureOr<Value> start = initialValue(root, offset);
  if (mlir::failed(start))
    return failure();
  if (*start)
    total = combine(root, *start, total, b);
  store(total, bufferOf(root), offset, b);
  b = outer;
  return success();
}

} // namespace pipewright::codegen
