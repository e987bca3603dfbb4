//===- GpuLaunches.cpp - which thread does what in a launch ---------------===//
//
// The part of GpuEmitter that opens functions and deals rows and columns.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// Threads of a block of pointwise launches.
static constexpr int64_t kElementThreads = 256;
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

  openCache(launch);

  OpBuilder outer = std::exchange(b, host);
  Value sharedBytes;
  if (launch.sharedBytes > 0)
    sharedBytes =
        arith::ConstantIntOp::create(b, loc, launch.sharedBytes, /*width=*/32);
  gpu::KernelDim3 blocks{constant(grid), constant(1), constant(1)};
  gpu::KernelDim3 threads{constant(block), constant(1), constant(1)};
  gpu::LaunchFuncOp::create(host, loc, function, blocks, threads, sharedBytes,
                            hostBuffers);
  b = outer;
}

Value GpuEmitter::makeBuffer(int64_t offset, Type element, int64_t size) {
  return memref::ViewOp::create(b, loc,
                                MemRefType::get({size}, storageType(element)),
                                scratchBuffer, constant(offset), ValueRange());
}

Value GpuEmitter::makeShared(int64_t size, Type element) {
  auto space = gpu::AddressSpaceAttr::get(
      context, gpu::GPUDialect::getWorkgroupAddressSpace());
  Value array = function.addWorkgroupAttribution(
      MemRefType::get({size}, element, AffineMap(), space), loc);
  // Vectors of up to 16 bytes are loaded and stored at once.
  function.setWorkgroupAttributionAttr(
      function.getNumWorkgroupAttributions() - 1,
      b.getStringAttr(LLVM::LLVMDialect::getAlignAttrName()),
      b.getI64IntegerAttr(16));
  return array;
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
  // This is false for the threads in front, too: their number wraps.
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
  // One block loads and stores while another computes.
  if (!work.team.isShort())
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(2));
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

} // namespace pipewright::codegen
