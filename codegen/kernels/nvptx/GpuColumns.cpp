//===- GpuColumns.cpp - sums over rows in registers -----------------------===//
//
// The part of GpuEmitter for launches that walk groups of rows: each thread
// adds up its columns, the groups of a block join in shared memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::codegen {

LogicalResult GpuEmitter::emitColumns(const Launch &launch) {
  const Nest &nest = plan.nests[launch.nest];
  int64_t summed = launch.split.summed(), kept = launch.split.kept();
  RowGroups groups = groupsFor(summed, nest.columns);
  Work work;
  work.team = teamFor(nest.columns);
  int64_t tiles = 1;
  Team &team = work.team;
  if (launch.kind == LaunchKind::RowsAndColumns) {
    team = rowsTeamFor(nest.columns);
  } else {
    team.threads = kTeamThreads / groups.perBlock;
    team.slots = 1;
    tiles = llvm::divideCeil(team.chunks, team.threads);
    work.isTile = team.chunks % team.threads != 0;
  }
  open(launch, tiles * groups.blocks * kept, team.threads * groups.perBlock);
  work.thread = rem(threadId, team.threads);
  Value group = div(threadId, team.threads);
  Value rest = blockId;
  if (tiles > 1) {
    work.firstChunk = mul(rem(rest, tiles), team.threads);
    rest = div(rest, tiles);
  }
  Value block = rem(rest, groups.blocks);
  Value keptNumber = div(rest, groups.blocks);

  SmallVector<const Root *> summedRoots;
  SmallVector<Value> initial;
  for (const Root *root : launch.roots)
    if (root->kind == RootKind::ElementAccumulation) {
      summedRoots.push_back(root);
      initial.append(team.slots * team.width, neutral(*root));
    }
  if (launch.sumsInShared) {
    openSums(work, summedRoots, group, groups.perBlock);
    initial.clear();
  }
  Value firstRow = add(mul(block, groups.perBlock), group);
  auto loop = scf::ForOp::create(b, loc, firstRow, constant(summed),
                                 constant(groups.groups()), initial);
  OpBuilder outer = b;
  b.setInsertionPointToEnd(loop.getBody());
  if (initial.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  Scope row(b);
  rowScope = &row;
  Value number = evaluate(launch.split.row(getAffineDimExpr(0, context),
                                           getAffineDimExpr(1, context)),
                          keptNumber, loop.getInductionVar(), b);
  setRow(row, number);
  Totals sums;
  ValueRange arguments = loop.getRegionIterArgs();
  int64_t perRoot = team.slots * team.width;
  if (!initial.empty())
    for (auto [i, root] : llvm::enumerate(summedRoots))
      sums[root] = llvm::to_vector(arguments.slice(i * perRoot, perRoot));
  if (mlir::failed(emitRow(launch, work, sums)))
    return failure();
  SmallVector<Value> next;
  if (!initial.empty())
    for (const Root *root : summedRoots)
      llvm::append_range(next, sums[root]);
  // Shared memory of this row may be written again.
  if (team.threads > 32 && launch.kind == LaunchKind::RowsAndColumns)
    gpu::BarrierOp::create(b, loc);
  if (!initial.empty())
    scf::YieldOp::create(b, loc, next);
  b = outer;
  if (!initial.empty())
    for (auto [i, root] : llvm::enumerate(summedRoots))
      sums[root] = llvm::to_vector(
          ValueRange(loop.getResults()).slice(i * perRoot, perRoot));
  LogicalResult result = finishColumns(launch, work, summedRoots, group, block,
                                       keptNumber, groups, sums);
  sharedSums.memory.clear();
  return result;
}

/// The sums of a thread stand in shared memory as the columns of its chunks.
Value GpuEmitter::sumPosition(const Work &work, Value group, int64_t slot) {
  const Team &team = work.team;
  Value chunk = add(work.thread, constant(slot * team.threads));
  return add(mul(group, team.threads * team.slots * team.width),
             mul(chunk, team.width));
}

void GpuEmitter::readSums(const Root &root, const Work &work, Value memory,
                          Value group, int64_t slot, Totals &sums) {
  int64_t width = work.team.width;
  SmallVector<Value> &values = sums[&root];
  values.resize(work.team.slots * width);
  Value part =
      vector::LoadOp::create(b, loc, VectorType::get(width, elementOf(root)),
                             memory, sumPosition(work, group, slot));
  for (int64_t lane = 0; lane < width; ++lane)
    values[slot * width + lane] = vector::ExtractOp::create(b, loc, part, lane);
}

void GpuEmitter::writeSums(const Root &root, const Work &work, Value memory,
                           Value group, int64_t slot, Totals &sums) {
  int64_t width = work.team.width;
  auto values = ArrayRef(sums[&root]).slice(slot * width, width);
  vector::StoreOp::create(
      b, loc,
      vector::FromElementsOp::create(
          b, loc, VectorType::get(width, elementOf(root)), values),
      memory, sumPosition(work, group, slot));
}

void GpuEmitter::openSums(const Work &work, ArrayRef<const Root *> roots,
                          Value group, int64_t groups) {
  const Team &team = work.team;
  sharedSums.work = &work;
  sharedSums.group = group;
  for (const Root *root : roots) {
    Value memory = makeShared(groups * team.threads * team.slots * team.width,
                              elementOf(*root));
    sharedSums.memory[root] = memory;
    Totals none;
    none[root].assign(team.slots * team.width, neutral(*root));
    for (int64_t slot = 0; slot < team.slots; ++slot)
      writeSums(*root, work, memory, group, slot, none);
  }
}

/// Adds the sums of the other groups to those of the first, which it leaves
/// `b` to go on with.
void GpuEmitter::addGroups(const Root &root, const Work &work, int64_t groups,
                           Value memory, Totals &sums) {
  const Team &team = work.team;
  for (int64_t other = 1; other < groups; ++other) {
    Totals parts;
    for (int64_t slot = 0; slot < team.slots; ++slot)
      readSums(root, work, memory, constant(other), slot, parts);
    for (auto [total, part] : llvm::zip(sums[&root], parts[&root]))
      total = combine(root, total, part, b);
  }
}

/// Brings together what the groups of a block have; the first group goes on.
void GpuEmitter::joinGroups(const Root &root, bool isFirst, const Work &work,
                            Value group, int64_t groups, Value memory,
                            Totals &sums) {
  const Team &team = work.team;
  bool stands = sharedSums.memory.contains(&root);
  if (!stands && !isFirst)
    // The sums of the root before have been read.
    gpu::BarrierOp::create(b, loc);
  for (int64_t slot = 0; !stands && slot < team.slots; ++slot)
    writeSums(root, work, memory, group, slot, sums);
  if (groups > 1 && (!stands || isFirst))
    gpu::BarrierOp::create(b, loc);
  if (groups > 1)
    b = scf::IfOp::create(b, loc,
                          arith::CmpIOp::create(b, loc,
                                                arith::CmpIPredicate::eq, group,
                                                constant(0)))
            .getThenBodyBuilder();
  for (int64_t slot = 0; stands && slot < team.slots; ++slot)
    readSums(root, work, memory, group, slot, sums);
  addGroups(root, work, groups, memory, sums);
}

/// Joins what the groups of a block have, and stores it.
LogicalResult GpuEmitter::finishColumns(const Launch &launch, const Work &work,
                                        ArrayRef<const Root *> roots,
                                        Value group, Value block, Value kept,
                                        const RowGroups &groups, Totals &sums) {
  const Team &team = work.team;
  Value row = evaluate(launch.split.row(getAffineDimExpr(0, context),
                                        getAffineConstantExpr(0, context)),
                       kept, Value(), b);
  Value line = add(mul(block, launch.split.kept()), kept), shared;
  if (groups.perBlock > 1 && !launch.sumsInShared)
    shared =
        makeShared(groups.perBlock * team.threads * team.slots * team.width,
                   elementOf(*roots.front()));
  for (const Root *root : roots) {
    OpBuilder outer = b;
    if (launch.sumsInShared || shared)
      joinGroups(*root, root == roots.front(), work, group, groups.perBlock,
                 shared ? shared : sharedSums.memory.lookup(root), sums);
    // The first group's branch is open.
    if (groups.perBlock > 1)
      outer.setInsertionPointAfter(b.getBlock()->getParentOp());
    for (int64_t slot = 0; slot < team.slots; ++slot) {
      OpBuilder before = b;
      Scope scope(b);
      rowScope = &scope;
      setRow(scope, row);
      std::unique_ptr<Chunk> chunk =
          makeChunk(b, work, constant(slot), !work.isTile && team.isFull(slot));
      if (chunk->valid)
        b = scf::IfOp::create(b, loc, chunk->valid).getThenBodyBuilder();
      scope.builder = b;
      auto values = ArrayRef(sums[root]).slice(slot * team.width, team.width);
      if (mlir::failed(storeSums(*root, *chunk, line, team.columns, values)))
        return failure();
      b = before;
    }
    b = outer;
  }
  return success();
}

/// Stores sums of neighbouring columns: into line `line` of the scratch memory
/// if other blocks have parts too, else as the result.
LogicalResult GpuEmitter::storeSums(const Root &root, Chunk &chunk, Value line,
                                    int64_t columns, ArrayRef<Value> values) {
  if (const PartialSums *partial = launchPlan.sumsOf(root)) {
    Type element = elementOf(root);
    Value buffer = makeBuffer(partial->offset, element,
                              partial->count * partial->elements);
    Value position = mul(line, columns);
    if (columns != 1)
      position = add(position,
                     chunk.origin.exprs.lookup(getAffineDimExpr(1, context)));
    vector::StoreOp::create(
        b, loc,
        vector::FromElementsOp::create(
            b, loc, VectorType::get(chunk.width, element), values),
        buffer, position, /*nontemporal=*/false,
        llvm::Align(chunk.width * element.getIntOrFloatBitWidth() / 8));
    return success();
  }
  PendingStore pending{&root, &chunk, llvm::to_vector(values)};
  SmallVector<Index> indices = *plan.indicesOf(root, plan.nests[currentNest]);
  for (auto [lane, value] : llvm::enumerate(pending.values)) {
    Scope column(b);
    column.exprs = chunk.lanes[lane]->exprs;
    columnScope = &column;
    FailureOr<Value> start =
        initialValue(root, rootOffset(root, indices, column));
    columnScope = nullptr;
    if (mlir::failed(start))
      return failure();
    if (*start)
      value = combine(root, *start, value, b);
  }
  storeChunk(pending, b);
  return success();
}

} // namespace pipewright::codegen
