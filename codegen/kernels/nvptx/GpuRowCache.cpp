//===- GpuRowCache.cpp - long rows in shared memory -----------------------===//
//
// The part of GpuEmitter that reads a row once where several passes need it and
// registers cannot hold it: the first pass leaves it in shared memory, or as
// much of its beginning as fits there. A thread reads what it has stored
// itself, and all threads have met in between.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace pipewright::codegen {

void GpuEmitter::openCache(const Launch &launch) {
  rowsInShared.clear();
  if (launch.sharedBytes == 0)
    return;
  auto space = gpu::AddressSpaceAttr::get(
      context, gpu::GPUDialect::getWorkgroupAddressSpace());
  Value all = gpu::DynamicSharedMemoryOp::create(
      b, loc,
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(), AffineMap(),
                      space));
  for (const CachedRow &row : launch.cache) {
    Value buffer = buffers.lookup(row.argument);
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value memory = memref::ViewOp::create(
        b, loc,
        MemRefType::get({launch.cachedColumns}, element, AffineMap(), space),
        all, constant(row.offset), ValueRange());
    rowsInShared[buffer] = {memory, std::nullopt};
  }
}

GpuEmitter::RowInShared *GpuEmitter::cacheOf(Value buffer, AffineExpr offset) {
  auto row = rowsInShared.find(buffer);
  if (row == rowsInShared.end() || !openedChunk || !usesCache ||
      offset != plan.element(plan.nests[currentNest]))
    return nullptr;
  return &row->second;
}

Value GpuEmitter::columnOf(const Scope &scope) {
  return scope.exprs.lookup(getAffineDimExpr(1, context));
}

Value GpuEmitter::loadCached(RowInShared &row, Value buffer, AffineExpr offset,
                             Type type, Scope &scope) {
  Chunk &chunk = *openedChunk;
  OpBuilder &builder = scope.builder;
  Value &all = chunk.vectors[{buffer, offset}];
  if (!all) {
    Type stored = cast<MemRefType>(buffer.getType()).getElementType();
    auto vector = VectorType::get(chunk.width, stored);
    Value column = columnOf(chunk.origin);
    auto alignment = chunkAlignment(stored, chunk.width);
    if (!row.filledIn)
      row.filledIn = currentPass;
    if (*row.filledIn < currentPass) {
      all = vector::LoadOp::create(builder, loc, vector, row.memory, column,
                                   /*nontemporal=*/false, alignment);
    } else {
      all = loadChunk(buffer, offset, chunk);
      OpBuilder inside = builder;
      // A chunk that does not exist repeats another thread's.
      if (chunk.valid)
        inside =
            scf::IfOp::create(builder, loc, chunk.valid).getThenBodyBuilder();
      vector::StoreOp::create(inside, loc, all, row.memory, column,
                              /*nontemporal=*/false, alignment);
    }
  }
  Value value = vector::ExtractOp::create(builder, loc, all, openedLane);
  return fromStorage(value, type, builder);
}

} // namespace pipewright::codegen
