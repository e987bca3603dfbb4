//===- GpuEmitter.h - write a planned kernel for a GPU ----------*- C++ -*-===//
//
// Emits the launches of a LaunchPlan as functions of a gpu.module: what one
// thread does. Neighbouring columns are loaded and stored together where memory
// and alignment permit.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUEMITTER_H
#define PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUEMITTER_H

#include "codegen/kernels/KernelSignature.h"
#include "codegen/kernels/plan/ElementEmitter.h"
#include "codegen/kernels/plan/LaunchPlan.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <memory>

namespace pipewright::codegen {

class GpuEmitter : ElementEmitter {
public:
  /// Adds the launches of `kernel` to `module`, and their calls at `host`.
  GpuEmitter(const RowPlan &plan, const LaunchPlan &launches,
             mlir::func::FuncOp kernel, mlir::gpu::GPUModuleOp module,
             mlir::OpBuilder &host, mlir::ValueRange hostBuffers);

  mlir::LogicalResult emit();

private:
  /// Neighbouring columns of one row in one thread.
  struct Chunk {
    explicit Chunk(mlir::OpBuilder builder) : origin(builder) {}
    Scope *row = nullptr;
    int64_t width = 1;
    /// Null if always in bounds; a chunk out of bounds recomputes another.
    mlir::Value valid;
    /// Where the column is the first of the chunk.
    Scope origin;
    std::vector<std::unique_ptr<Scope>> lanes;
    /// What was loaded from a buffer at an offset for all lanes.
    llvm::DenseMap<std::pair<mlir::Value, mlir::AffineExpr>, mlir::Value>
        vectors;
  };
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  /// Running results of reductions.
  using Totals = llvm::DenseMap<const Root *, llvm::SmallVector<mlir::Value>>;
  struct PendingStore {
    const Root *root;
    Chunk *chunk;
    llvm::SmallVector<mlir::Value> values;
  };
  /// What a thread has to do with a row.
  struct Work {
    Team team;
    /// The first chunk of the team, or null for zero.
    mlir::Value firstChunk;
    /// This thread in its team.
    mlir::Value thread;
    /// Whether the row exists; null where it always does. A thread whose row
    /// does not exist works on another row again.
    mlir::Value valid;
    /// Whether `chunk < team.chunks` has to be checked for all slots.
    bool isTile = false;
  };

  // Launches (GpuLaunches.cpp)
  mlir::LogicalResult emitLaunch(const Launch &launch);
  mlir::LogicalResult emitElements(const Launch &launch);
  mlir::LogicalResult emitElementRun(const Launch &launch, int64_t width);
  mlir::LogicalResult emitElementTail(const Launch &launch, mlir::Value thread,
                                      int64_t chunks, int64_t width);
  mlir::LogicalResult emitRowScalars(const Launch &launch);
  mlir::LogicalResult emitRows(const Launch &launch);
  void open(const Launch &launch, int64_t grid, int64_t block);
  /// Part of the scratch memory.
  mlir::Value makeBuffer(int64_t offset, mlir::Type element, int64_t size);
  /// Memory that the threads of a block share.
  mlir::Value makeShared(int64_t size, mlir::Type element);

  // Rows (GpuRows.cpp)
  /// Emits all passes over the row that `rowScope` stands at.
  mlir::LogicalResult emitRow(const Launch &launch, const Work &work,
                              Totals &sums);
  mlir::LogicalResult emitSlots(llvm::ArrayRef<const Root *> roots,
                                const Work &work, Chunks &chunks,
                                Totals &totals, Totals &sums);
  mlir::LogicalResult emitLongRow(const Launch &launch,
                                  llvm::ArrayRef<const Root *> roots,
                                  const Work &work, Totals &totals);
  /// The steps of a long row from `begin` on, in a loop.
  mlir::LogicalResult emitSteps(llvm::ArrayRef<const Root *> roots,
                                const Work &work, int64_t begin, int64_t end,
                                Totals &totals);
  mlir::LogicalResult emitChunk(llvm::ArrayRef<const Root *> roots,
                                Chunk &chunk, int64_t slot, Totals &totals,
                                Totals &sums,
                                std::vector<PendingStore> &stores);
  std::unique_ptr<Chunk> makeChunk(mlir::OpBuilder &builder, const Work &work,
                                   mlir::Value slot, bool isFull);
  void finishReductions(llvm::ArrayRef<const Root *> reductions,
                        const Work &work, Totals &totals);
  void joinWarps(llvm::ArrayRef<const Root *> reductions, const Work &work,
                 Totals &totals);
  void storeRowValue(const Root &root, mlir::Value value, mlir::Value buffer,
                     mlir::Value offset, const Work &work);
  void flush(std::vector<PendingStore> &stores, mlir::Value rowValid,
             mlir::OpBuilder &builder);
  void storeChunk(const PendingStore &pending, mlir::OpBuilder &builder);

  // Sums over rows (GpuColumns.cpp)
  mlir::LogicalResult emitColumns(const Launch &launch);
  mlir::LogicalResult finishColumns(const Launch &launch, const Work &work,
                                    llvm::ArrayRef<const Root *> roots,
                                    mlir::Value group, mlir::Value block,
                                    mlir::Value kept, const RowGroups &groups,
                                    Totals &sums);
  void openSums(const Work &work, llvm::ArrayRef<const Root *> roots,
                mlir::Value group, int64_t groups);
  /// Where a slot of this thread has its sums in shared memory.
  mlir::Value sumPosition(const Work &work, mlir::Value group, int64_t slot);
  void readSums(const Root &root, const Work &work, mlir::Value memory,
                mlir::Value group, int64_t slot, Totals &sums);
  void writeSums(const Root &root, const Work &work, mlir::Value memory,
                 mlir::Value group, int64_t slot, Totals &sums);
  void joinGroups(const Root &root, bool isFirst, const Work &work,
                  mlir::Value group, int64_t groups, mlir::Value memory,
                  Totals &sums);
  void addGroups(const Root &root, const Work &work, int64_t groups,
                 mlir::Value memory, Totals &sums);
  mlir::LogicalResult storeSums(const Root &root, Chunk &chunk,
                                mlir::Value line, int64_t columns,
                                llvm::ArrayRef<mlir::Value> values);

  // Second launches (GpuSums.cpp)
  mlir::LogicalResult emitSums(const Launch &launch);
  mlir::LogicalResult emitPartialSum(const Launch &launch,
                                     const PartialSums &partial,
                                     mlir::Value block, mlir::Value shared,
                                     int64_t elements, int64_t groups);
  /// What a sum over rows starts from, if that is not nothing.
  mlir::FailureOr<mlir::Value> initialValue(const Root &root,
                                            mlir::Value offset);

  // Rows in shared memory (GpuRowCache.cpp)
  /// A row that later passes read from shared memory.
  struct RowInShared {
    mlir::Value memory;
    /// The pass that reads it from its place; known once that has begun.
    std::optional<unsigned> filledIn;
  };
  void openCache(const Launch &launch);
  /// The cache of what stands at `offset` of `buffer`, or null.
  RowInShared *cacheOf(mlir::Value buffer, mlir::AffineExpr offset);
  mlir::Value loadCached(RowInShared &row, mlir::Value buffer,
                         mlir::AffineExpr offset, mlir::Type type,
                         Scope &scope);
  mlir::Value columnOf(const Scope &scope);

  // Scalars
  mlir::Value load(mlir::Value buffer, mlir::AffineExpr offset, mlir::Type type,
                   Scope &scope) override;
  /// The alignment of a chunk that starts at a multiple of its width.
  static llvm::MaybeAlign chunkAlignment(mlir::Type element, int64_t width);
  /// Reads a chunk, or one element where it has one column.
  mlir::Value loadChunk(mlir::Value buffer, mlir::AffineExpr offset,
                        Chunk &chunk);
  bool isContiguous(mlir::AffineExpr offset) const;
  bool isAligned(mlir::AffineExpr offset, int64_t width) const;
  std::unique_ptr<Chunk> openChunk(mlir::OpBuilder &builder, mlir::Value column,
                                   int64_t width, mlir::Value valid);
  void setRow(Scope &scope, mlir::Value row);
  /// `expr` of two numbers.
  mlir::Value evaluate(mlir::AffineExpr expr, mlir::Value d0, mlir::Value d1,
                       mlir::OpBuilder &builder);
  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value div(mlir::Value x, int64_t y);
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value isBelow(mlir::Value x, int64_t y);
  /// Both, where null is true.
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value bufferOf(const Root &root) const;
  /// Whether a result is added to what is there.
  bool isAdded(const Root &root);
  mlir::Value neutral(const Root &root);
  mlir::Type elementOf(const Root &root) const;

  const LaunchPlan &launchPlan;
  mlir::func::FuncOp kernel;
  KernelSignature signature;
  mlir::gpu::GPUModuleOp module;
  mlir::OpBuilder &host;
  mlir::ValueRange hostBuffers;
  unsigned numLaunches = 0;

  /// The launch that is open.
  mlir::gpu::GPUFuncOp function;
  mlir::OpBuilder b;
  mlir::Value scratchBuffer, blockId, threadId;
  llvm::DenseMap<mlir::Value, RowInShared> rowsInShared;
  /// Whether the columns at hand are among those in shared memory.
  bool usesCache = false;
  /// Sums over rows that stand in shared memory while rows are walked; each
  /// thread of each group has its own.
  struct {
    llvm::DenseMap<const Root *, mlir::Value> memory;
    const Work *work = nullptr;
    mlir::Value group;
  } sharedSums;
  Chunk *openedChunk = nullptr;
  int64_t openedLane = 0;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUEMITTER_H
