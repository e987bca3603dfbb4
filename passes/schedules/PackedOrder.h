//===- PackedOrder.h - The tasks of a rank in few bytes ---------*- C++ -*-===//
//
// In nearly every schedule the tasks of one kind and stage go through the
// micro-batches up or down by a constant step. So a byte says which kind and
// stage is next, and its micro-batch follows; what does not follow is written
// out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_PACKEDORDER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_PACKEDORDER_H

#include "passes/schedules/Task.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace pipewright::schedules {

class PackedOrder {
public:
  PackedOrder() = default;
  explicit PackedOrder(llvm::ArrayRef<Task> tasks);

  /// Null at the end. Both pointers hold until the next `advance`.
  const Task *task() const { return numRead > 0 ? &read[0] : nullptr; }
  const Task *partner() const { return numRead > 1 ? &read[1] : nullptr; }
  void advance();

  int64_t bytes() const;

private:
  /// A run of tasks of one kind, stage and `overlapsNext`.
  struct Series {
    Task next;
    int32_t step;
  };
  static constexpr uint8_t writtenOut = 255;

  void readNext();

  std::vector<Series> series;
  std::vector<uint8_t> code;
  size_t at = 0;
  /// The next two tasks.
  Task read[2];
  int numRead = 0;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_PACKEDORDER_H
