//===- RowEmitter.cpp - write a planned kernel as loops -------------------===//

#include "codegen/kernels/cpu/RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace pipewright::codegen {

/// Partial sums of a reduction over rows of a length: up to four vectors of
/// sixteen floats, so that the additions of one lane do not wait for each
/// other. Depends on nothing else, or sums would.
static int64_t lanesFor(int64_t columns) {
  return columns < 32 ? 1 : columns < 256 ? 16 : 64;
}

/// Kernels run on the threads of ranks, whose stacks have a few megabytes.
static constexpr int64_t kMaxStackBytes = 512 * 1024;

/// Columns of a strip in which a transpose is done, and rows after which the
/// next strip begins: what they read and write stays in the first cache.
static constexpr int64_t kTileColumns = 8, kTileRows = 64;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

RowEmitter::RowEmitter(const RowPlan &plan, OpBuilder &builder, Location loc,
                       DenseMap<Value, Value> buffers, ArrayRef<Value> results)
    : ElementEmitter(plan, loc, std::move(buffers), results), entry(builder),
      entryBlock(builder.getBlock()) {}

Value RowEmitter::allocate(Type element, int64_t size) {
  element = storageType(element);
  stackBytes += size * ((element.getIntOrFloatBitWidth() + 7) / 8);
  auto type = MemRefType::get({size}, element);
  if (stackBytes <= kMaxStackBytes)
    return memref::AllocaOp::create(entry, loc, type);
  emitWarning(loc) << "kernel takes " << type << " from the heap";
  Value buffer = memref::AllocOp::create(entry, loc, type);
  heapBuffers.push_back(buffer);
  return buffer;
}

/// Sets the memory that a reduction adds to, unless it adds to what is there.
LogicalResult RowEmitter::prepareAccumulator(const Root &root) {
  if (root.kind != RootKind::RowAccumulation &&
      root.kind != RootKind::ElementAccumulation)
    return success();
  Value init = root.reduction().getDpsInits()[0];
  Value buffer = buffers.lookup(root.tensor);
  if (buffers.lookup(init) == buffer)
    return success();
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Attribute constant;
  if (!fill || !matchPattern(fill.value(), m_Constant(&constant)))
    return root.reduction().emitOpError(
        "expects a constant or the result's own memory as initial value");
  Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
  Value one = arith::ConstantIndexOp::create(entry, loc, 1);
  Value size = arith::ConstantIndexOp::create(
      entry, loc, typeOf(root.tensor).getNumElements());
  Value value = arith::ConstantOp::create(entry, loc,
                                          typeOf(root.tensor).getElementType(),
                                          cast<TypedAttr>(constant));
  auto loop = scf::ForOp::create(entry, loc, zero, size, one);
  OpBuilder inner(loop.getBody()->getTerminator());
  store(value, buffer, loop.getInductionVar(), inner);
  return success();
}

LogicalResult RowEmitter::emitPass(unsigned number, unsigned pass) {
  const Nest &nest = plan.nests[number];
  currentPass = pass;
  SmallVector<const Root *> columnRoots, rowRoots;
  for (const Root &root : plan.roots)
    if (root.nest == number && root.pass == pass)
      (root.kind == RootKind::RowScalar ? rowRoots : columnRoots)
          .push_back(&root);
  for (const Root *root : rowRoots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    Value value = emitElement(root->tensor, indices);
    if (failed)
      return failure();
    store(value, results[root->result], rootOffset(*root, indices, *rowScope),
          rowScope->builder);
  }
  if (columnRoots.empty())
    return success();

  OpBuilder &row = rowScope->builder;
  Value zero = arith::ConstantIndexOp::create(row, loc, 0);
  Value one = arith::ConstantIndexOp::create(row, loc, 1);
  SmallVector<const Root *> reductions;
  for (const Root *root : columnRoots)
    if (root->kind == RootKind::RowReduction ||
        root->kind == RootKind::RowAccumulation)
      reductions.push_back(root);
  if (reductions.empty()) {
    Value columns = arith::ConstantIndexOp::create(row, loc, nest.columns);
    auto loop = scf::ForOp::create(row, loc, tileBegin ? tileBegin : zero,
                                   tileEnd ? tileEnd : columns, one);
    return emitColumns(number, columnRoots, loop, loop, Value());
  }

  int64_t width = lanesFor(nest.columns);
  if (mlir::failed(openLanes(reductions, width)))
    return failure();
  // Column j adds to lane j % width, in ascending order: the result does not
  // depend on what else the loop computes, nor on how it is vectorized.
  int64_t blocks = nest.columns / width, rest = nest.columns % width;
  Value lanes = arith::ConstantIndexOp::create(row, loc, width);
  if (blocks > 0) {
    Value count = arith::ConstantIndexOp::create(row, loc, blocks);
    auto outer = scf::ForOp::create(row, loc, zero, count, one);
    OpBuilder inside = OpBuilder::atBlockBegin(outer.getBody());
    Value base =
        arith::MulIOp::create(inside, loc, outer.getInductionVar(), lanes);
    auto inner = scf::ForOp::create(inside, loc, zero, lanes, one);
    if (mlir::failed(emitColumns(number, columnRoots, outer, inner, base)))
      return failure();
  }
  if (rest > 0) {
    Value count = arith::ConstantIndexOp::create(row, loc, rest);
    Value base = arith::ConstantIndexOp::create(row, loc, blocks * width);
    auto loop = scf::ForOp::create(row, loc, zero, count, one);
    if (mlir::failed(emitColumns(number, columnRoots, loop, loop, base)))
      return failure();
  }
  for (const Root *root : reductions)
    closeLanes(*root, nest);
  return success();
}

LogicalResult RowEmitter::emitColumns(unsigned number,
                                      ArrayRef<const Root *> roots,
                                      scf::ForOp outer, scf::ForOp inner,
                                      Value base) {
  const Nest &nest = plan.nests[number];
  OpBuilder &row = rowScope->builder;
  // Row values that the loop needs are emitted in front of it.
  row.setInsertionPoint(outer);
  columnScope =
      &columnStorage.emplace(OpBuilder::atBlockBegin(inner.getBody()));
  Value lane = inner.getInductionVar(), column = lane;
  if (base)
    column = arith::AddIOp::create(columnScope->builder, loc, base, lane);
  if (nest.columns != 1)
    columnScope->exprs[getAffineDimExpr(1, context)] = column;

  // All values first, then all stores: a result may overwrite an argument.
  SmallVector<PendingStore> stores;
  for (const Root *root : roots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    Value buffer = buffers.lookup(root->tensor), offset, value;
    if (linalg::GenericOp op = root->reduction()) {
      bool inLanes = root->kind != RootKind::ElementAccumulation;
      if (inLanes)
        buffer = laneBuffers.lookup(root->tensor);
      offset = inLanes ? lane : rootOffset(*root, indices, *columnScope);
      Value accumulator =
          memref::LoadOp::create(columnScope->builder, loc, buffer, offset);
      value = emitBody(op, indices, accumulator, *columnScope);
    } else {
      value = emitElement(root->tensor, indices);
      if (failed)
        return failure();
      offset = root->rowTemporary ? emitExpr(plan.column(nest), *columnScope)
                                  : rootOffset(*root, indices, *columnScope);
      if (root->result >= 0)
        buffer = results[root->result];
    }
    if (failed)
      return failure();
    stores.push_back({value, buffer, offset});
  }
  for (const PendingStore &pending : stores)
    store(pending.value, pending.buffer, pending.offset, columnScope->builder);
  columnScope = nullptr;
  row.setInsertionPointAfter(outer);
  return success();
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

void RowEmitter::forEachLane(
    int64_t count, llvm::function_ref<void(OpBuilder &, Value)> body) {
  OpBuilder &row = rowScope->builder;
  Value zero = arith::ConstantIndexOp::create(row, loc, 0);
  Value one = arith::ConstantIndexOp::create(row, loc, 1);
  Value end = arith::ConstantIndexOp::create(row, loc, count);
  auto loop = scf::ForOp::create(row, loc, zero, end, one);
  OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
  body(inner, loop.getInductionVar());
}

LogicalResult RowEmitter::openLanes(ArrayRef<const Root *> reductions,
                                    int64_t width) {
  for (const Root *root : reductions) {
    linalg::GenericOp op = root->reduction();
    Operation *combiner = combinerOf(op);
    if (!combiner)
      return op.emitOpError("expects a sum or a maximum over rows");
    Value &buffer = laneBuffers[root->tensor];
    Type type = typeOf(root->tensor).getElementType();
    if (!buffer) {
      OpBuilder::InsertionGuard guard(entry);
      entry.setInsertionPointToStart(entryBlock);
      buffer = allocate(type, width);
    }
    Value start = arith::ConstantOp::create(rowScope->builder, loc,
                                            neutralOf(combiner, type));
    forEachLane(width, [&](OpBuilder &b, Value lane) {
      memref::StoreOp::create(b, loc, start, buffer, lane);
    });
  }
  return success();
}

void RowEmitter::closeLanes(const Root &root, const Nest &nest) {
  Value buffer = laneBuffers.lookup(root.tensor);
  OpBuilder &row = rowScope->builder;
  // A tree, so that it takes few steps.
  for (int64_t half = lanesFor(nest.columns) / 2; half > 0; half /= 2) {
    Value distance = arith::ConstantIndexOp::create(row, loc, half);
    forEachLane(half, [&](OpBuilder &b, Value lane) {
      Value x = memref::LoadOp::create(b, loc, buffer, lane);
      Value y = memref::LoadOp::create(
          b, loc, buffer,
          arith::AddIOp::create(b, loc, lane, distance).getResult());
      memref::StoreOp::create(b, loc, combine(root, x, y, b), buffer, lane);
    });
  }
  Value zero = arith::ConstantIndexOp::create(row, loc, 0);
  Value total = memref::LoadOp::create(row, loc, buffer, zero);
  if (root.kind == RootKind::RowReduction)
    rowValues[root.tensor] = total;
  if (!root.stored)
    return;
  Value storage = buffers.lookup(root.tensor);
  Value offset = rootOffset(root, *plan.indicesOf(root, nest), *rowScope);
  if (root.kind == RootKind::RowAccumulation) {
    Value before = memref::LoadOp::create(row, loc, storage, offset);
    total = combine(root, before, total, row);
  }
  store(total, storage, offset, row);
}

/// Transposes walk columns that lie far apart: a narrow strip of columns keeps
/// their cache lines until the following rows have used them too, and a strip
/// of few rows keeps those that it writes until the next strip has filled them.
bool RowEmitter::needsTiles(unsigned number) const {
  const Nest &nest = plan.nests[number];
  return nest.strided && nest.passes == 1 && nest.rows > 1 &&
         nest.columns > kTileColumns &&
         llvm::all_of(plan.roots, [&](const Root &root) {
           return root.nest != number || root.kind == RootKind::Element;
         });
}

std::pair<Value, Value> RowEmitter::openTiles(int64_t count, int64_t size) {
  Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
  Value step = arith::ConstantIndexOp::create(entry, loc, size);
  Value all = arith::ConstantIndexOp::create(entry, loc, count);
  auto tiles = scf::ForOp::create(entry, loc, zero, all, step);
  entry.setInsertionPointToStart(tiles.getBody());
  Value begin = tiles.getInductionVar();
  Value end = arith::MinUIOp::create(
      entry, loc, arith::AddIOp::create(entry, loc, begin, step), all);
  return {begin, end};
}

LogicalResult RowEmitter::emitNest(unsigned number) {
  const Nest &nest = plan.nests[number];
  currentNest = number;
  rowValues.clear();
  symbols.clear();
  for (const Root &root : plan.roots)
    if (root.nest == number && mlir::failed(prepareAccumulator(root)))
      return failure();
  OpBuilder::InsertionGuard guard(entry);
  Value rowBegin, rowEnd;
  if (needsTiles(number)) {
    std::tie(rowBegin, rowEnd) = openTiles(nest.rows, kTileRows);
    std::tie(tileBegin, tileEnd) = openTiles(nest.columns, kTileColumns);
  }
  rowScope = &rowStorage.emplace(entry);
  if (nest.rows != 1) {
    Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
    Value one = arith::ConstantIndexOp::create(entry, loc, 1);
    Value rows = arith::ConstantIndexOp::create(entry, loc, nest.rows);
    auto loop = scf::ForOp::create(entry, loc, rowBegin ? rowBegin : zero,
                                   rowEnd ? rowEnd : rows, one);
    rowScope->builder.setInsertionPointToStart(loop.getBody());
    rowScope->exprs[getAffineDimExpr(0, context)] = loop.getInductionVar();
  }
  for (unsigned pass = 0; pass < nest.passes; ++pass)
    if (mlir::failed(emitPass(number, pass)))
      return failure();
  tileBegin = tileEnd = Value();
  rowScope = nullptr;
  return success();
}

LogicalResult RowEmitter::emit() {
  for (const Root &root : plan.roots) {
    RankedTensorType type = typeOf(root.tensor);
    const Nest &nest = plan.nests[root.nest];
    if (root.result >= 0)
      // Copies of a tensor that already has storage do not replace it.
      buffers.insert({root.tensor, results[root.result]});
    else if (root.rowTemporary)
      buffers[root.tensor] = allocate(type.getElementType(), nest.columns);
    else if (root.stored)
      buffers[root.tensor] =
          allocate(type.getElementType(), type.getNumElements());
  }
  for (unsigned number = 0; number < plan.nests.size(); ++number)
    if (failed || mlir::failed(emitNest(number)))
      return failure();
  for (Value buffer : heapBuffers)
    memref::DeallocOp::create(entry, loc, buffer);
  return success();
}

} // namespace pipewright::codegen
