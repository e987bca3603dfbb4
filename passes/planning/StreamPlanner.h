//===- StreamPlanner.h - Who waits for whom between streams -----*- C++ -*-===//
//
// Work on several streams that reads and writes the same memory: finds the
// fewest waits that keep it in order, as pure code over plain data.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_STREAMPLANNER_H
#define PIPEWRIGHT_PASSES_PLANNING_STREAMPLANNER_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace pipewright {

struct ByteRange {
  int64_t begin = 0;
  int64_t bytes = 0;
};

/// A piece of work. Work of one stream runs in the order given, each piece
/// after the end of the one before.
struct StreamWork {
  /// Numbered from 0.
  size_t stream = 0;
  std::vector<ByteRange> reads, writes;
};

/// For each piece of work, the pieces of other streams at whose ends its stream
/// has to wait before it, ascending. Two accesses to the same byte, one of
/// which writes, then happen in the order given. No wait can be left out: none
/// follows from the others and from what the stream waited for before.
///
/// Each wait is for the very work that is needed, not for a later one that
/// others wait for anyway: nothing begins later than it must.
std::vector<std::vector<size_t>> planWaits(llvm::ArrayRef<StreamWork> program);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_STREAMPLANNER_H
