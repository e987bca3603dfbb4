//===- GpuRows.cpp - what a team of threads does with a row ---------------===//
//
// The part of GpuEmitter that makes passes over a row. Short rows are unrolled:
// what one pass loads or computes is still in registers in the next. Long rows
// are walked in a loop for each pass.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace pipewright::codegen {

static bool isRowSum(const Root *root) {
  return root->kind == RootKind::RowReduction ||
         root->kind == RootKind::RowAccumulation;
}

std::unique_ptr<GpuEmitter::Chunk> GpuEmitter::makeChunk(OpBuilder &builder,
                                                         const Work &work,
                                                         Value slot,
                                                         bool isFull) {
  OpBuilder outer = std::exchange(b, builder);
  Value number = add(mul(slot, work.team.threads), work.thread), valid;
  if (work.firstChunk)
    number = add(number, work.firstChunk);
  if (!isFull) {
    valid = isBelow(number, work.team.chunks);
    number =
        arith::MinUIOp::create(b, loc, number, constant(work.team.chunks - 1));
  }
  Value column = mul(number, work.team.width);
  b = outer;
  return openChunk(builder, column, work.team.width, valid);
}

/// Computes all `roots` for a chunk: values to be stored, and what is added to
/// reductions.
LogicalResult GpuEmitter::emitChunk(ArrayRef<const Root *> roots, Chunk &chunk,
                                    int64_t slot, Totals &totals, Totals &sums,
                                    std::vector<PendingStore> &stores) {
  const Nest &nest = plan.nests[currentNest];
  openedChunk = &chunk;
  for (const Root *root : roots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    PendingStore pending{root, &chunk, {}};
    Value memory = sharedSums.memory.lookup(root);
    if (memory) {
      OpBuilder outer = std::exchange(b, chunk.origin.builder);
      readSums(*root, *sharedSums.work, memory, sharedSums.group, slot, sums);
      b = outer;
    }
    for (int64_t lane = 0; lane < chunk.width; ++lane) {
      openedLane = lane;
      columnScope = chunk.lanes[lane].get();
      linalg::GenericOp op = root->reduction();
      if (!op) {
        pending.values.push_back(emitElement(root->tensor, indices));
      } else {
        bool isSum = root->kind == RootKind::ElementAccumulation;
        Value &total = isSum ? sums[root][slot * chunk.width + lane]
                             : totals[root].front();
        Value next = emitBody(op, indices, total, *columnScope);
        if (failed)
          break;
        // A chunk that does not exist may be added to sums of columns, which
        // are never stored, but not to those of the row.
        total = isSum || !chunk.valid
                    ? next
                    : arith::SelectOp::create(columnScope->builder, loc,
                                              chunk.valid, next, total);
      }
      if (failed)
        break;
    }
    columnScope = nullptr;
    if (failed)
      return failure();
    if (memory) {
      OpBuilder outer = std::exchange(b, chunk.origin.builder);
      writeSums(*root, *sharedSums.work, memory, sharedSums.group, slot, sums);
      b = outer;
    }
    if (!root->reduction())
      stores.push_back(std::move(pending));
  }
  openedChunk = nullptr;
  return success();
}

void GpuEmitter::flush(std::vector<PendingStore> &stores, Value rowValid,
                       OpBuilder &builder) {
  OpBuilder outer = std::exchange(b, builder);
  // Stores of one chunk share a condition.
  for (size_t i = 0; i < stores.size();) {
    Chunk *chunk = stores[i].chunk;
    OpBuilder inside = builder;
    if (Value condition = both(chunk->valid, rowValid))
      inside = scf::IfOp::create(builder, loc, condition).getThenBodyBuilder();
    for (; i < stores.size() && stores[i].chunk == chunk; ++i)
      storeChunk(stores[i], inside);
  }
  stores.clear();
  b = outer;
}

LogicalResult GpuEmitter::emitSlots(ArrayRef<const Root *> roots,
                                    const Work &work, Chunks &chunks,
                                    Totals &totals, Totals &sums) {
  std::vector<PendingStore> stores;
  for (int64_t slot = 0; slot < work.team.slots; ++slot) {
    if (static_cast<int64_t>(chunks.size()) <= slot)
      chunks.push_back(makeChunk(rowScope->builder, work, constant(slot),
                                 !work.isTile && work.team.isFull(slot)));
    if (mlir::failed(
            emitChunk(roots, *chunks[slot], slot, totals, sums, stores)))
      return failure();
  }
  flush(stores, work.valid, rowScope->builder);
  return success();
}

LogicalResult GpuEmitter::emitSteps(ArrayRef<const Root *> roots,
                                    const Work &work, int64_t begin,
                                    int64_t end, Totals &totals) {
  if (begin == end)
    return success();
  int64_t perStep = work.team.chunksPerStep();
  SmallVector<const Root *> reductions = llvm::filter_to_vector(
      roots, [](const Root *root) { return isRowSum(root); });
  SmallVector<Value> initial = llvm::map_to_vector(
      reductions, [&](const Root *root) { return totals[root].front(); });
  OpBuilder &row = rowScope->builder;
  auto loop = scf::ForOp::create(row, loc, constant(begin), constant(end),
                                 constant(1), initial);
  // What belongs to the row is emitted in front of the loop.
  row.setInsertionPoint(loop);
  for (auto [root, value] : llvm::zip(reductions, loop.getRegionIterArgs()))
    totals[root] = {value};
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  if (!loop.getBody()->empty())
    inside.setInsertionPoint(loop.getBody()->getTerminator());
  OpBuilder outer = std::exchange(b, inside);
  Value first = mul(loop.getInductionVar(), perStep);
  std::vector<PendingStore> stores;
  Totals none;
  Chunks chunks;
  for (int64_t i = 0; i < perStep; ++i) {
    b = inside;
    chunks.push_back(
        makeChunk(inside, work, add(first, constant(i)), /*isFull=*/true));
    if (mlir::failed(emitChunk(roots, *chunks.back(), 0, totals, none, stores)))
      return failure();
  }
  flush(stores, work.valid, inside);
  if (!reductions.empty())
    scf::YieldOp::create(inside, loc,
                         llvm::map_to_vector(reductions, [&](const Root *root) {
                           return totals[root].front();
                         }));
  row.setInsertionPointAfter(loop);
  b = outer;
  b.setInsertionPointAfter(loop);
  for (auto [root, value] : llvm::zip(reductions, loop.getResults()))
    totals[root] = {value};
  return success();
}

LogicalResult GpuEmitter::emitLongRow(const Launch &launch,
                                      ArrayRef<const Root *> roots,
                                      const Work &work, Totals &totals) {
  const Team &team = work.team;
  int64_t steps = team.fullSteps();
  int64_t cached =
      std::min(steps, launch.cachedColumns / team.columnsPerStep());
  usesCache = true;
  if (mlir::failed(emitSteps(roots, work, 0, cached, totals)))
    return failure();
  usesCache = launch.cachedColumns == team.columns;
  if (mlir::failed(emitSteps(roots, work, cached, steps, totals)))
    return failure();
  std::vector<PendingStore> stores;
  Totals none;
  Chunks rest;
  for (int64_t slot = steps * team.chunksPerStep(); slot < team.slots; ++slot) {
    rest.push_back(
        makeChunk(rowScope->builder, work, constant(slot), team.isFull(slot)));
    if (mlir::failed(emitChunk(roots, *rest.back(), 0, totals, none, stores)))
      return failure();
  }
  flush(stores, work.valid, rowScope->builder);
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions of a row
//===----------------------------------------------------------------------===//

void GpuEmitter::joinWarps(ArrayRef<const Root *> reductions, const Work &work,
                           Totals &totals) {
  int64_t warps = work.team.threads / 32;
  Value lane = rem(work.thread, 32), warp = div(work.thread, 32);
  SmallVector<Value> shared;
  for (const Root *root : reductions)
    shared.push_back(makeShared(warps, elementOf(*root)));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                        constant(0));
  OpBuilder inside = scf::IfOp::create(b, loc, isFirst).getThenBodyBuilder();
  for (auto [root, buffer] : llvm::zip(reductions, shared))
    memref::StoreOp::create(inside, loc, totals[root].front(), buffer, warp);
  gpu::BarrierOp::create(b, loc);
  for (auto [root, buffer] : llvm::zip(reductions, shared)) {
    Value total;
    for (int64_t i = 0; i < warps; ++i) {
      Value part = memref::LoadOp::create(b, loc, buffer, constant(i));
      total = total ? combine(*root, total, part, b) : part;
    }
    totals[root] = {total};
  }
}

void GpuEmitter::storeRowValue(const Root &root, Value value, Value buffer,
                               Value offset, const Work &work) {
  Value condition = work.valid;
  if (work.team.threads > 1)
    condition =
        both(condition, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                              work.thread, constant(0)));
  OpBuilder inside = b;
  if (condition)
    inside = scf::IfOp::create(b, loc, condition).getThenBodyBuilder();
  store(value, buffer, offset, inside);
}

void GpuEmitter::finishReductions(ArrayRef<const Root *> reductions,
                                  const Work &work, Totals &totals) {
  // Neighbours last: a tree that all threads walk, so all know the result.
  for (const Root *root : reductions) {
    Value &total = totals[root].front();
    for (int64_t distance = std::min<int64_t>(work.team.threads, 32) / 2;
         distance > 0; distance /= 2) {
      Value other = gpu::ShuffleOp::create(b, loc, total, distance, 32,
                                           gpu::ShuffleMode::XOR)
                        .getShuffleResult();
      total = combine(*root, total, other, b);
    }
  }
  if (work.team.threads > 32)
    joinWarps(reductions, work, totals);
  for (const Root *root : reductions) {
    Value total = totals[root].front();
    if (root->kind == RootKind::RowAccumulation) {
      const PartialSums &partial = *launchPlan.sumsOf(*root);
      Value buffer = makeBuffer(partial.offset, elementOf(*root),
                                partial.count * partial.elements);
      storeRowValue(*root, total, buffer,
                    emitExpr(plan.row(plan.nests[currentNest]), *rowScope),
                    work);
      continue;
    }
    rowValues[root->tensor] = total;
    Value buffer = bufferOf(*root);
    if (!buffer)
      continue;
    Value offset = rootOffset(
        *root, *plan.indicesOf(*root, plan.nests[currentNest]), *rowScope);
    if (isAdded(*root))
      total = combine(*root, memref::LoadOp::create(b, loc, buffer, offset),
                      total, b);
    storeRowValue(*root, total, buffer, offset, work);
  }
}

LogicalResult GpuEmitter::emitRow(const Launch &launch, const Work &work,
                                  Totals &sums) {
  const Nest &nest = plan.nests[currentNest];
  rowValues.clear();
  Chunks chunks;
  unsigned passes = launch.afterRows ? 1 : nest.passes;
  for (unsigned pass = 0; pass < passes; ++pass) {
    currentPass = launch.afterRows ? nest.passes : pass;
    SmallVector<const Root *> roots, reductions;
    for (const Root *root : launch.roots) {
      if (!launch.afterRows && root->pass != pass)
        continue;
      if (root->kind != RootKind::RowScalar) {
        roots.push_back(root);
        if (isRowSum(root))
          reductions.push_back(root);
        continue;
      }
      SmallVector<Index> indices = *plan.indicesOf(*root, nest);
      Value value = emitElement(root->tensor, indices);
      if (failed)
        return failure();
      storeRowValue(*root, value, bufferOf(*root),
                    rootOffset(*root, indices, *rowScope), work);
    }
    if (roots.empty())
      continue;
    Totals totals;
    for (const Root *root : reductions)
      totals[root] = {neutral(*root)};
    if (mlir::failed(work.team.isShort()
                         ? emitSlots(roots, work, chunks, totals, sums)
                         : emitLongRow(launch, roots, work, totals)))
      return failure();
    if (!reductions.empty())
      finishReductions(reductions, work, totals);
  }
  return success();
}

} // namespace pipewright::codegen
