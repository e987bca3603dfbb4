//===- LaunchPlan.h - how a planned kernel is launched ----------*- C++ -*-===//
//
// Cuts the loop nests of a RowPlan into launches for a GPU, deals rows and
// columns to threads, and places what passes between launches in scratch
// memory. In which order a sum is made follows from shapes alone.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PLAN_LAUNCHPLAN_H
#define PIPEWRIGHT_CODEGEN_KERNELS_PLAN_LAUNCHPLAN_H

#include "codegen/kernels/plan/RowPlan.h"

#include <vector>

namespace pipewright::codegen {

/// Threads of a block that holds several teams.
inline constexpr int64_t kTeamThreads = 128;

/// Threads that share a row. Its columns are cut into chunks of `width`, which
/// are dealt to the threads in turn: chunk c is slot c / threads of thread
/// c % threads.
struct Team {
  int64_t columns = 1;
  /// Columns of a chunk: one access to memory.
  int64_t width = 1;
  int64_t chunks = 1;
  int64_t threads = 1;
  /// Chunks of a thread; the last one may be missing.
  int64_t slots = 1;

  /// Whether a thread can keep all that it loads of a row in registers.
  bool isShort() const { return slots * width <= (threads > 512 ? 16 : 32); }
  /// Chunks of a thread in one step of the loop over a long row: enough loads
  /// under way at a time.
  int64_t chunksPerStep() const { return width == 8 ? 2 : 8 / width; }
  int64_t columnsPerStep() const { return chunksPerStep() * threads * width; }
  /// Steps for which all threads have all chunks.
  int64_t fullSteps() const { return columns / columnsPerStep(); }
  /// Whether chunk `slot` exists for every thread.
  bool isFull(int64_t slot) const { return (slot + 1) * threads <= chunks; }
};

/// The team that reduces rows of this length. Depends on nothing else, or a
/// reduction would be other bits in another kernel.
Team teamFor(int64_t columns);

/// The same for threads that also add rows up: at least a warp. Those without
/// columns add nothing to the sums of a row.
Team rowsTeamFor(int64_t columns);

/// How `rows` are dealt to groups that add them up, each row in ascending
/// order, for each column: row r belongs to group r % groups.
struct RowGroups {
  /// Groups that share a block, and add their sums up there.
  int64_t perBlock = 1;
  int64_t blocks = 1;

  int64_t groups() const { return perBlock * blocks; }
};
RowGroups groupsFor(int64_t rows, int64_t columns);

/// The rows of a nest seen by a reduction over rows: some dimensions of the
/// row's number are kept, the others are reduced.
struct RowSplit {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<bool> reduced;

  bool operator==(const RowSplit &other) const = default;
  int64_t kept() const { return size(false); }
  int64_t summed() const { return size(true); }
  /// The row at positions among the kept and the reduced ones.
  mlir::AffineExpr row(mlir::AffineExpr kept, mlir::AffineExpr summed) const;

private:
  int64_t size(bool ofReduced) const;
};

/// A reduction over rows that a second launch finishes.
struct PartialSums {
  const Root *root = nullptr;
  RowSplit split;
  /// How many partial results each element of the result has.
  int64_t count = 1;
  /// Where they lie in scratch memory: for sums of whole rows by row, else by
  /// number, kept rows and column.
  int64_t offset = 0;
  /// Elements of the result.
  int64_t elements = 1;
};

enum class LaunchKind {
  /// Threads take elements.
  Elements,
  /// Threads take rows; one value for each.
  RowScalars,
  /// Teams take a row each.
  Rows,
  /// Groups of rows by tiles of columns; sums over rows in registers.
  Columns,
  /// Teams take rows in turn; sums over rows in registers.
  RowsAndColumns,
  /// Adds up what the launch before left in scratch memory.
  Sums,
};

/// Part of the shared memory of a block: a row that it has read and needs
/// again, or its beginning.
struct CachedRow {
  mlir::Value argument;
  int64_t offset = 0;
};

struct Launch {
  LaunchKind kind = LaunchKind::Elements;
  unsigned nest = 0;
  llvm::SmallVector<const Root *> roots;
  /// How rows are dealt, where there are sums over rows.
  RowSplit split;
  /// Reads row values and elements of this nest from memory.
  bool afterRows = false;
  /// Whether sums over rows stand in shared memory while rows are walked.
  bool sumsInShared = false;
  std::vector<PartialSums> sums;
  /// Rows too long for registers that later passes read from shared memory.
  std::vector<CachedRow> cache;
  /// How much of them is there: all, or so many full steps of the beginning.
  int64_t cachedColumns = 0;
  /// Bytes of shared memory that the launch asks for.
  int64_t sharedBytes = 0;
};

struct LaunchPlan {
  /// Plans the launches of all nests of `plan`.
  explicit LaunchPlan(const RowPlan &plan);

  std::vector<Launch> launches;
  /// Offsets of tensors that are stored but no results.
  llvm::DenseMap<mlir::Value, int64_t> scratch;
  int64_t scratchBytes = 0;
  /// Columns of one access in pointwise launches: 16 bytes of what most of the
  /// memory is made of.
  int64_t width = 4;
  /// Whether 32 bits hold the position of every element.
  bool isSmall = true;

  const PartialSums *sumsOf(const Root &root) const;

private:
  void planNest(const RowPlan &plan, unsigned number);
  void addColumnSums(unsigned number, llvm::ArrayRef<const Root *> roots,
                     llvm::ArrayRef<const Root *> others, LaunchKind kind,
                     bool afterRows, const Nest &nest);
  void addSums(const Root &root, const RowSplit &split, int64_t count,
               int64_t elements);
  void addCache(Launch &launch, const Nest &nest);
  int64_t allocate(mlir::Type element, int64_t size);

  std::vector<PartialSums> sums;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PLAN_LAUNCHPLAN_H
