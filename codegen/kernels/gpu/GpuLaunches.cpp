//===- GpuLaunches.cpp - which thread does what in a launch ---------------===//
//
// The part of GpuEmitter that opens functions and deals rows and columns.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/gpu/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// Threads of a block of pointwise launches.
static constexpr int64_t kElementThreads = 256;
/// Threads of a block that holds several teams.
static constexpr int64_t kTeamThreads = 128;
/// Threads of a block that adds up partial sums.
static constexpr int64_t kSumThreads = 256;
/// Elements of a thread where it takes them one by one.
static constexpr int64_t kSingleElements = 4;
/// Rows and columns of a tile of a transpose.
static constexpr int64_t kTile = 32;
static_assert(kTile * kTile == kElementThreads * kSingleElements);

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void GpuEmitter::open(const Launch &launch, int64_t grid, int64_t block) {
  std::string name = kernel.getName().str();
  if (launchPlan.launches.size() > 1)
    name += "$" + std::to_string(++numLaunches);
  SmallVector<Type> types = signature.parameters;
  if (launchPlan.scratchBytes > 0)
    types.push_back(
        MemRefType::get({launchPlan.scratchBytes}, host.getI8Type()));
  OpBuilder top = OpBuilder::atBlockEnd(module.getBody());
  function = gpu::GPUFuncOp::create(top, loc, name,
                                    FunctionType::get(context, types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    top.getUnitAttr());
  function.setKnownBlockSize(
      std::array<int32_t, 3>{static_cast<int32_t>(block), 1, 1});
  for (unsigned i = 0; i < types.size(); ++i) {
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                        top.getUnitAttr());
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        top.getI64IntegerAttr(16));
    bool isResult = i >= kernel.getNumArguments() || signature.isWritten(i);
    if (!isResult)
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                          top.getUnitAttr());
  }
  b.setInsertionPointToEnd(&function.getBody().front());
  blockId = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  threadId = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  scratchBuffer = launchPlan.scratchBytes > 0
                      ? function.getArgument(types.size() - 1)
                      : Value();

  buffers.clear();
  storedRowValues.clear();
  for (BlockArgument argument : kernel.getArguments())
    buffers[argument] = function.getArgument(argument.getArgNumber());
  results =
      llvm::map_to_vector(signature.resultParameters, [&](unsigned i) -> Value {
        return function.getArgument(i);
      });
  createConstantBuffers(kernel, module, b, buffers);
  for (const Root &root : plan.roots) {
    auto offset = launchPlan.scratch.find(root.tensor);
    auto type = cast<RankedTensorType>(root.tensor.getType());
    if (root.result >= 0)
      buffers.insert({root.tensor, results[root.result]});
    else if (offset != launchPlan.scratch.end())
      buffers[root.tensor] = makeBuffer(offset->second, type.getElementType(),
                                        type.getNumElements());
    if (launch.afterRows && root.nest == launch.nest &&
        root.kind == RootKind::RowReduction)
      storedRowValues.insert(root.tensor);
  }

  OpBuilder outer = std::exchange(b, host);
  gpu::KernelDim3 blocks{constant(grid), constant(1), constant(1)};
  gpu::KernelDim3 threads{constant(block), constant(1), constant(1)};
  gpu::LaunchFuncOp::create(host, loc, function, blocks, threads, Value(),
                            hostBuffers);
  b = outer;
}

Value GpuEmitter::makeBuffer(int64_t offset, Type element, int64_t size) {
  return memref::ViewOp::create(b, loc,
                                MemRefType::get({size}, storageType(element)),
                                scratchBuffer, constant(offset), ValueRange());
}

LogicalResult GpuEmitter::emitLaunch(const Launch &launch) {
  currentNest = launch.nest;
  currentPass = 0;
  rowValues.clear();
  symbols.clear();
  LogicalResult result = [&] {
    switch (launch.kind) {
    case LaunchKind::Elements:
      return emitElements(launch);
    case LaunchKind::RowScalars:
      return emitRowScalars(launch);
    case LaunchKind::Rows:
      return emitRows(launch);
    case LaunchKind::Columns:
    case LaunchKind::RowsAndColumns:
      return emitColumns(launch);
    case LaunchKind::Sums:
      return emitSums(launch);
    }
    llvm_unreachable("all kinds are listed");
  }();
  rowScope = columnScope = nullptr;
  if (function && !failed) {
    b.setInsertionPointToEnd(&function.getBody().front());
    gpu::ReturnOp::create(b, loc);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

LogicalResult GpuEmitter::emitElements(const Launch &launch) {
  const Nest &nest = plan.nests[launch.nest];
  int64_t width =
      nest.strided || nest.columns < launchPlan.width ? 1 : launchPlan.width;
  if (nest.rows != 1 && nest.columns % width != 0)
    width = 1;
  if (width > 1)
    return emitElementRun(launch, width);

  // Elements one by one. Blocks of a transpose take square tiles: what their
  // reads bring into the cache beside a row's element is the next rows'.
  bool tiled = nest.strided && nest.rows >= kTile && nest.columns >= kTile;
  int64_t perBlock = kElementThreads * kSingleElements;
  int64_t tileRows = llvm::divideCeil(nest.rows, kTile);
  int64_t tileColumns = llvm::divideCeil(nest.columns, kTile);
  open(launch,
       tiled ? tileRows * tileColumns
             : llvm::divideCeil(nest.elements, perBlock),
       kElementThreads);
  std::vector<PendingStore> stores;
  std::vector<std::unique_ptr<Scope>> rows;
  Chunks chunks;
  /// `number`, or the last below `end` and that it is none.
  auto clamp = [&](Value number, int64_t end, bool always, Value &valid) {
    if (always)
      return number;
    valid = both(valid, isBelow(number, end));
    return Value(arith::MinUIOp::create(b, loc, number, constant(end - 1)));
  };
  for (int64_t i = 0; i < kSingleElements; ++i) {
    Value row, column, valid;
    if (tiled) {
      constexpr int64_t rowsAtOnce = kElementThreads / kTile;
      row = add(mul(div(blockId, tileColumns), kTile),
                add(div(threadId, kTile), constant(i * rowsAtOnce)));
      column = add(mul(rem(blockId, tileColumns), kTile), rem(threadId, kTile));
      row = clamp(row, nest.rows, nest.rows % kTile == 0, valid);
      column = clamp(column, nest.columns, nest.columns % kTile == 0, valid);
    } else {
      Value number = clamp(add(add(mul(blockId, perBlock), threadId),
                               constant(i * kElementThreads)),
                           nest.elements, nest.elements % perBlock == 0, valid);
      row = div(number, nest.columns);
      column = nest.rows == 1 ? number : rem(number, nest.columns);
    }
    rows.push_back(std::make_unique<Scope>(b));
    rowScope = rows.back().get();
    setRow(*rowScope, row);
    chunks.push_back(openChunk(b, column, 1, valid));
    Totals none;
    if (mlir::failed(
            emitChunk(launch.roots, *chunks.back(), 0, none, none, stores)))
      return failure();
  }
  flush(stores, Value(), b);
  return success();
}

/// One chunk for each thread; a row of its own may end in part of a chunk.
LogicalResult GpuEmitter::emitElementRun(const Launch &launch, int64_t width) {
  const Nest &nest = plan.nests[launch.nest];
  int64_t perRow = nest.columns / width, rest = nest.columns % width;
  int64_t chunks = nest.rows * perRow;
  int64_t threads = chunks + rest;
  open(launch, llvm::divideCeil(threads, kElementThreads), kElementThreads);
  OpBuilder outer = b;
  Value number = add(mul(blockId, kElementThreads), threadId);
  if (chunks % kElementThreads != 0 || rest > 0)
    b = scf::IfOp::create(b, loc, isBelow(number, chunks)).getThenBodyBuilder();
  Scope row(b);
  rowScope = &row;
  setRow(row, div(number, perRow));
  Value position = nest.rows == 1 ? number : rem(number, perRow);
  std::unique_ptr<Chunk> chunk = openChunk(b, mul(position, width), width, {});
  std::vector<PendingStore> stores;
  Totals none;
  if (mlir::failed(emitChunk(launch.roots, *chunk, 0, none, none, stores)))
    return failure();
  flush(stores, Value(), b);
  b = outer;
  b.setInsertionPointToEnd(&function.getBody().front());
  return rest == 0 ? success() : emitElementTail(launch, number, chunks, width);
}

/// The threads behind those of whole chunks take an element each.
LogicalResult GpuEmitter::emitElementTail(const Launch &launch, Value thread,
                                          int64_t chunks, int64_t width) {
  const Nest &nest = plan.nests[launch.nest];
  int64_t begin = chunks * width;
  // Also false for the threads in front: their number wraps.
  Value number = arith::SubIOp::create(b, loc, thread, constant(chunks));
  b = scf::IfOp::create(b, loc, isBelow(number, nest.columns - begin))
          .getThenBodyBuilder();
  Scope row(b);
  rowScope = &row;
  std::unique_ptr<Chunk> chunk =
      openChunk(b, add(number, constant(begin)), 1, {});
  std::vector<PendingStore> stores;
  Totals none;
  if (mlir::failed(emitChunk(launch.roots, *chunk, 0, none, none, stores)))
    return failure();
  flush(stores, Value(), b);
  return success();
}

LogicalResult GpuEmitter::emitRowScalars(const Launch &launch) {
  const Nest &nest = plan.nests[launch.nest];
  open(launch, llvm::divideCeil(nest.rows, kElementThreads), kElementThreads);
  Value number = add(mul(blockId, kElementThreads), threadId);
  if (nest.rows % kElementThreads != 0)
    b = scf::IfOp::create(b, loc, isBelow(number, nest.rows))
            .getThenBodyBuilder();
  Scope row(b);
  rowScope = &row;
  setRow(row, number);
  Work work;
  for (const Root *root : launch.roots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    Value value = emitElement(root->tensor, indices);
    if (failed)
      return failure();
    storeRowValue(*root, value, bufferOf(*root),
                  rootOffset(*root, indices, row), work);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult GpuEmitter::emitRows(const Launch &launch) {
  const Nest &nest = plan.nests[launch.nest];
  Work work;
  work.team = teamFor(nest.columns);
  int64_t threads = std::max(work.team.threads, kTeamThreads);
  int64_t teams = threads / work.team.threads;
  open(launch, llvm::divideCeil(nest.rows, teams), threads);
  Value number = blockId;
  work.thread = threadId;
  if (teams > 1) {
    number = add(mul(blockId, teams), div(threadId, work.team.threads));
    work.thread = rem(threadId, work.team.threads);
  }
  if (nest.rows % teams != 0) {
    work.valid = isBelow(number, nest.rows);
    number = arith::MinUIOp::create(b, loc, number, constant(nest.rows - 1));
  }
  Scope row(b);
  rowScope = &row;
  setRow(row, number);
  Totals none;
  return emitRow(launch, work, none);
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

LogicalResult GpuEmitter::emitColumns(const Launch &launch) {
  const Nest &nest = plan.nests[launch.nest];
  int64_t summed = launch.split.summed(), kept = launch.split.kept();
  RowGroups groups = groupsFor(summed, nest.columns);
  Work work;
  work.team = teamFor(nest.columns);
  int64_t tiles = 1;
  Team &team = work.team;
  if (launch.kind == LaunchKind::RowsAndColumns) {
    // Threads without columns add nothing to the sums of a row.
    team.threads = std::max<int64_t>(team.threads, 32);
    team.slots = llvm::divideCeil(team.chunks, team.threads);
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
  Value firstRow = add(mul(block, groups.perBlock), group);
  auto loop = scf::ForOp::create(b, loc, firstRow, constant(summed),
                                 constant(groups.groups()), initial);
  OpBuilder outer = b;
  b.setInsertionPointToEnd(loop.getBody());
  Scope row(b);
  rowScope = &row;
  Value number = evaluate(launch.split.row(getAffineDimExpr(0, context),
                                           getAffineDimExpr(1, context)),
                          keptNumber, loop.getInductionVar(), b);
  setRow(row, number);
  Totals sums;
  ValueRange arguments = loop.getRegionIterArgs();
  int64_t perRoot = team.slots * team.width;
  for (auto [i, root] : llvm::enumerate(summedRoots))
    sums[root] = llvm::to_vector(arguments.slice(i * perRoot, perRoot));
  if (mlir::failed(emitRow(launch, work, sums)))
    return failure();
  SmallVector<Value> next;
  for (const Root *root : summedRoots)
    llvm::append_range(next, sums[root]);
  // Shared memory of this row may be written again.
  if (team.threads > 32 && launch.kind == LaunchKind::RowsAndColumns)
    gpu::BarrierOp::create(b, loc);
  scf::YieldOp::create(b, loc, next);
  b = outer;
  for (auto [i, root] : llvm::enumerate(summedRoots))
    sums[root] = llvm::to_vector(
        ValueRange(loop.getResults()).slice(i * perRoot, perRoot));
  return joinGroups(launch, work, group, block, keptNumber, groups, sums);
}

/// Adds the sums of a block's groups up in their order, and stores them.
LogicalResult GpuEmitter::joinGroups(const Launch &launch, const Work &work,
                                     Value group, Value block, Value kept,
                                     const RowGroups &groups, Totals &sums) {
  const Team &team = work.team;
  int64_t width = team.width;
  Scope row(b);
  rowScope = &row;
  setRow(row, evaluate(launch.split.row(getAffineDimExpr(0, context),
                                        getAffineConstantExpr(0, context)),
                       kept, Value(), b));
  Value shared, isFirst;
  auto space = gpu::AddressSpaceAttr::get(
      context, gpu::GPUDialect::getWorkgroupAddressSpace());
  int64_t block1 = team.threads * team.slots * width;
  if (groups.perBlock > 1)
    isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, group,
                                    constant(0));
  bool again = false;
  for (const Root *root : launch.roots) {
    if (root->kind != RootKind::ElementAccumulation)
      continue;
    Type element = elementOf(*root);
    auto vector = VectorType::get(width, element);
    auto positionOf = [&](Value ofGroup, int64_t slot) {
      return add(mul(ofGroup, block1),
                 mul(add(work.thread, constant(slot * team.threads)), width));
    };
    OpBuilder outer = b;
    if (groups.perBlock > 1) {
      if (!shared)
        shared = function.addWorkgroupAttribution(
            MemRefType::get({groups.perBlock * block1}, element, AffineMap(),
                            space),
            loc);
      if (again)
        gpu::BarrierOp::create(b, loc);
      again = true;
      for (int64_t slot = 0; slot < team.slots; ++slot)
        vector::StoreOp::create(
            b, loc,
            vector::FromElementsOp::create(
                b, loc, vector,
                ArrayRef(sums[root]).slice(slot * width, width)),
            shared, positionOf(group, slot));
      gpu::BarrierOp::create(b, loc);
      outer = b;
      b = scf::IfOp::create(b, loc, isFirst).getThenBodyBuilder();
      for (int64_t other = 1; other < groups.perBlock; ++other)
        for (int64_t slot = 0; slot < team.slots; ++slot) {
          Value part = vector::LoadOp::create(
              b, loc, vector, shared, positionOf(constant(other), slot));
          for (int64_t lane = 0; lane < width; ++lane) {
            Value &total = sums[root][slot * width + lane];
            total = combine(*root, total,
                            vector::ExtractOp::create(b, loc, part, lane), b);
          }
        }
    }
    const PartialSums *partial = launchPlan.sumsOf(*root);
    std::vector<PendingStore> stores;
    Chunks chunks;
    for (int64_t slot = 0; slot < team.slots; ++slot) {
      Scope here(b);
      here.exprs = row.exprs;
      rowScope = &here;
      chunks.push_back(makeChunk(b, work, constant(slot),
                                 !work.isTile && team.isFull(slot)));
      Chunk &chunk = *chunks.back();
      ArrayRef<Value> values = ArrayRef(sums[root]).slice(slot * width, width);
      OpBuilder before = b;
      if (chunk.valid)
        b = scf::IfOp::create(b, loc, chunk.valid).getThenBodyBuilder();
      if (partial) {
        int64_t columns = team.columns;
        Value buffer = makeBuffer(partial->offset, element,
                                  partial->count * partial->elements);
        Value line = add(mul(block, launch.split.kept()), kept);
        Value column =
            columns == 1
                ? constant(0)
                : chunk.origin.exprs.lookup(getAffineDimExpr(1, context));
        vector::StoreOp::create(
            b, loc, vector::FromElementsOp::create(b, loc, vector, values),
            buffer, add(mul(line, columns), column), /*nontemporal=*/false,
            llvm::Align(width * element.getIntOrFloatBitWidth() / 8));
      } else {
        PendingStore pending{root, &chunk, llvm::to_vector(values)};
        SmallVector<Index> indices =
            *plan.indicesOf(*root, plan.nests[currentNest]);
        for (int64_t lane = 0; lane < width; ++lane) {
          columnScope = chunk.lanes[lane].get();
          Scope column(b);
          column.exprs = columnScope->exprs;
          columnScope = &column;
          here.builder = b;
          FailureOr<Value> start =
              initialValue(*root, rootOffset(*root, indices, column));
          columnScope = nullptr;
          if (mlir::failed(start))
            return failure();
          if (*start)
            pending.values[lane] =
                combine(*root, *start, pending.values[lane], b);
        }
        storeChunk(pending, b);
      }
      b = before;
    }
    b = outer;
  }
  return success();
}

FailureOr<Value> GpuEmitter::initialValue(const Root &root, Value offset) {
  linalg::GenericOp op = root.reduction();
  Value init = op.getDpsInits()[0];
  if (buffers.lookup(init) && buffers.lookup(init) == bufferOf(root))
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

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Elements of a block that adds up partial sums.
static int64_t elementsPerBlock(const PartialSums &partial) {
  return std::min<int64_t>(32, llvm::PowerOf2Ceil(partial.elements));
}

LogicalResult GpuEmitter::emitSums(const Launch &launch) {
  int64_t grid = 0;
  for (const PartialSums &partial : launch.sums)
    grid += llvm::divideCeil(partial.elements, elementsPerBlock(partial));
  open(launch, grid, kSumThreads);
  auto space = gpu::AddressSpaceAttr::get(
      context, gpu::GPUDialect::getWorkgroupAddressSpace());
  Value shared = function.addWorkgroupAttribution(
      MemRefType::get({kSumThreads}, b.getF32Type(), AffineMap(), space), loc);
  int64_t begin = 0;
  for (const PartialSums &partial : launch.sums) {
    int64_t perBlock = elementsPerBlock(partial);
    int64_t blocks = llvm::divideCeil(partial.elements, perBlock);
    OpBuilder outer = b;
    Value block = blockId;
    if (launch.sums.size() > 1) {
      // Also false for the blocks in front of these: their number wraps.
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
