//===- GpuEmitter.cpp - scalars and accesses of a GPU thread --------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"
#include "dialects/nn/NNAttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace pipewright::codegen {

GpuEmitter::GpuEmitter(const RowPlan &plan, const LaunchPlan &launches,
                       func::FuncOp kernel, gpu::GPUModuleOp module,
                       OpBuilder &host, ValueRange hostBuffers)
    : ElementEmitter(plan, kernel.getLoc(), DenseMap<Value, Value>(), {}),
      launchPlan(launches), kernel(kernel), signature(kernel), module(module),
      host(host), hostBuffers(hostBuffers), b(kernel.getContext()) {}

//===----------------------------------------------------------------------===//
// Arithmetic of positions
//===----------------------------------------------------------------------===//

Value GpuEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value GpuEmitter::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value GpuEmitter::mul(Value x, int64_t y) {
  return y == 1 ? x : b.createOrFold<arith::MulIOp>(loc, x, constant(y));
}
Value GpuEmitter::div(Value x, int64_t y) {
  return y == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, constant(y));
}
Value GpuEmitter::rem(Value x, int64_t y) {
  return y == 1 ? constant(0)
                : b.createOrFold<arith::RemUIOp>(loc, x, constant(y));
}
Value GpuEmitter::isBelow(Value x, int64_t y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x,
                               constant(y));
}
Value GpuEmitter::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, loc, x, y);
}

Value GpuEmitter::evaluate(AffineExpr expr, Value d0, Value d1,
                           OpBuilder &builder) {
  Scope scope(builder), *row = rowScope, *column = columnScope;
  scope.exprs[getAffineDimExpr(0, context)] = d0;
  scope.exprs[getAffineDimExpr(1, context)] = d1;
  rowScope = &scope;
  columnScope = nullptr;
  Value value = emitExpr(expr, scope);
  rowScope = row;
  columnScope = column;
  return value;
}

void GpuEmitter::setRow(Scope &scope, Value row) {
  if (plan.nests[currentNest].rows != 1)
    scope.exprs[getAffineDimExpr(0, context)] = row;
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

std::unique_ptr<GpuEmitter::Chunk> GpuEmitter::openChunk(OpBuilder &builder,
                                                         Value column,
                                                         int64_t width,
                                                         Value valid) {
  auto chunk = std::make_unique<Chunk>(builder);
  chunk->row = rowScope;
  chunk->width = width;
  chunk->valid = valid;
  AffineExpr d1 = getAffineDimExpr(1, context);
  bool one = plan.nests[currentNest].columns == 1;
  if (!one)
    chunk->origin.exprs[d1] = column;
  for (int64_t lane = 0; lane < width; ++lane) {
    auto scope = std::make_unique<Scope>(builder);
    if (!one)
      scope->exprs[d1] =
          lane == 0 ? column
                    : builder.createOrFold<arith::AddIOp>(
                          loc, column,
                          arith::ConstantIndexOp::create(builder, loc, lane));
    chunk->lanes.push_back(std::move(scope));
  }
  return chunk;
}

bool GpuEmitter::isContiguous(AffineExpr offset) const {
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (symbol.second && offset.isFunctionOfSymbol(i))
      return false;
  AffineExpr d1 = getAffineDimExpr(1, context);
  auto step = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(
      offset.replace(d1, d1 + 1) - offset, 2, symbols.size()));
  return step && step.getValue() == 1;
}

bool GpuEmitter::isAligned(AffineExpr offset, int64_t width) const {
  AffineExpr d1 = getAffineDimExpr(1, context);
  return simplifyAffineExpr(offset.replace(d1, d1 * width), 2, symbols.size())
      .isMultipleOf(width);
}

llvm::MaybeAlign GpuEmitter::chunkAlignment(Type element, int64_t width) {
  int64_t bytes = width * element.getIntOrFloatBitWidth() / 8;
  return llvm::Align(std::min<int64_t>(bytes, 16));
}

Value GpuEmitter::load(Value buffer, AffineExpr offset, Type type,
                       Scope &scope) {
  if (RowInShared *row = cacheOf(buffer, offset))
    return loadCached(*row, buffer, offset, type, scope);
  Chunk *chunk = &scope == columnScope ? openedChunk : nullptr;
  if (!chunk || chunk->width == 1 || !isContiguous(offset) ||
      !isAligned(offset, chunk->width))
    return ElementEmitter::load(buffer, offset, type, scope);
  OpBuilder &builder = scope.builder;
  Value &all = chunk->vectors[{buffer, offset}];
  if (!all)
    all = loadChunk(buffer, offset, *chunk);
  Value value = vector::ExtractOp::create(builder, loc, all, openedLane);
  return fromStorage(value, type, builder);
}

Value GpuEmitter::loadChunk(Value buffer, AffineExpr offset, Chunk &chunk) {
  Scope *column = std::exchange(columnScope, &chunk.origin);
  Value position = emitExpr(offset, chunk.origin);
  columnScope = column;
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  return vector::LoadOp::create(
      chunk.origin.builder, loc, VectorType::get(chunk.width, stored), buffer,
      position, /*nontemporal=*/false, chunkAlignment(stored, chunk.width));
}

void GpuEmitter::storeChunk(const PendingStore &pending, OpBuilder &builder) {
  Chunk &chunk = *pending.chunk;
  const Root &root = *pending.root;
  Value buffer = bufferOf(root);
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  AffineExpr offset =
      rootOffsetExpr(root, *plan.indicesOf(root, plan.nests[currentNest]));
  SmallVector<Value> values =
      llvm::map_to_vector(pending.values, [&](Value value) {
        return toStorage(value, stored, builder);
      });
  // The store may stand inside a condition that other stores do not share.
  auto positionIn = [&](const Scope &scope) {
    Scope row(builder), column(builder);
    row.exprs = chunk.row->exprs;
    column.exprs = scope.exprs;
    Scope *before = std::exchange(rowScope, &row);
    columnScope = &column;
    Value position = emitExpr(offset, column);
    rowScope = before;
    columnScope = nullptr;
    return position;
  };
  if (chunk.width > 1 && isContiguous(offset) &&
      isAligned(offset, chunk.width)) {
    Value all = vector::FromElementsOp::create(
        builder, loc, VectorType::get(chunk.width, stored), values);
    vector::StoreOp::create(builder, loc, all, buffer, positionIn(chunk.origin),
                            /*nontemporal=*/false,
                            chunkAlignment(stored, chunk.width));
    return;
  }
  for (auto [lane, value] : llvm::enumerate(values))
    memref::StoreOp::create(builder, loc, value, buffer,
                            positionIn(*chunk.lanes[lane]));
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

Value GpuEmitter::bufferOf(const Root &root) const {
  return root.result >= 0 ? results[root.result] : buffers.lookup(root.tensor);
}

bool GpuEmitter::isAdded(const Root &root) {
  return root.result >= 0 && kernel.getResultAttr(root.result, nn::kAdded);
}

Type GpuEmitter::elementOf(const Root &root) const {
  return cast<RankedTensorType>(root.tensor.getType()).getElementType();
}

Value GpuEmitter::neutral(const Root &root) {
  return arith::ConstantOp::create(
      b, loc, neutralOf(combinerOf(root.reduction()), elementOf(root)));
}

LogicalResult GpuEmitter::emit() {
  for (const Root &root : plan.roots) {
    linalg::GenericOp op = root.reduction();
    if (op && !combinerOf(op))
      return op.emitOpError("expects a sum or a maximum over rows");
    if (!op && isAdded(root))
      return root.tensor.getDefiningOp()->emitOpError(
          "expects a reduction where a result is added to what is there");
  }
  for (const Launch &launch : launchPlan.launches)
    if (mlir::failed(emitLaunch(launch)) || failed)
      return failure();
  return success();
}

} // namespace pipewright::codegen
