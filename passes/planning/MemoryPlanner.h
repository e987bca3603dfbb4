//===- MemoryPlanner.h - Offsets for buffers by their lives -----*- C++ -*-===//
//
// Packs buffers whose lives are known intervals into one block of memory, as
// pure code over plain data.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MEMORYPLANNER_H
#define PIPEWRIGHT_PASSES_PLANNING_MEMORYPLANNER_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// A buffer that is in use from point `begin` to point `end`, both included.
struct BufferLife {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;
};

/// A buffer that is in use several times, each time anew; the points of each
/// time are both included.
struct BufferTurns {
  struct Turn {
    int64_t begin = 0;
    int64_t end = 0;
  };
  std::vector<Turn> turns;
  int64_t bytes = 0;
};

struct MemoryPlan {
  /// Parallel to the lives; multiples of the alignment.
  std::vector<int64_t> offsets;
  /// The end of the highest buffer, not rounded.
  int64_t bytes = 0;
};

/// No two buffers that are in use at the same point overlap. Buffers are placed
/// in the given order, each into the smallest gap that it fits in. Takes time
/// in proportion to n times the buffers in use at a time.
MemoryPlan placeBuffers(llvm::ArrayRef<BufferLife> lives,
                        llvm::ArrayRef<size_t> order, int64_t alignment);

/// The smallest of several such plans: the largest buffers first, and, if that
/// takes more than the least bytes, those with the largest product of bytes and
/// life, with the longest lives, or in the order of their begins; then each
/// again and again, with the buffer that ended highest placed first. All but
/// the first plan are made within a budget of buffers looked at, some twenty
/// milliseconds. Equal input gives equal output.
MemoryPlan planMemory(llvm::ArrayRef<BufferLife> lives, int64_t alignment);

/// The same of a few buffers: takes time in proportion to n squared.
MemoryPlan planTurns(llvm::ArrayRef<BufferTurns> buffers, int64_t alignment);

/// Of buffers of one size: each is put where none has been for the longest
/// time, and there are `spare` places more than buffers in use at a time, or as
/// many as there are buffers. So what uses the bytes before is long over.
MemoryPlan planInTurns(llvm::ArrayRef<BufferLife> lives, int64_t spare,
                       int64_t alignment);

/// The most bytes in use at any one point: no plan can be smaller.
int64_t leastBytes(llvm::ArrayRef<BufferLife> lives, int64_t alignment);

/// The most buffers in use at any one point.
int64_t mostInUse(llvm::ArrayRef<BufferLife> lives);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MEMORYPLANNER_H
