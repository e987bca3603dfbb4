//===- Pairs.h - Which tasks overlap ----------------------------*- C++ -*-===//
//
// The one definition of an overlapped pair: a task that says so and the one
// right behind it on its rank, in an order of tasks as in a list with messages.
// Both start when the needs of both are met, and end together: results of
// either are there when the pair ends, and what either frees is of no use to
// the other. Pairs do not chain, and nothing stands between their two; the
// checkers refuse it (Dependences.cpp, Checker.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_PAIRS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_PAIRS_H

#include "passes/schedules/Instruction.h"

#include "llvm/ADT/ArrayRef.h"

namespace pipewright::schedules {

inline bool isFirstOfPair(llvm::ArrayRef<Task> tasks, size_t at) {
  return tasks[at].overlapsNext && at + 1 < tasks.size();
}
inline bool isFirstOfPair(llvm::ArrayRef<RankInstruction> list, size_t at) {
  return list[at].kind == InstructionKind::Task && list[at].task.overlapsNext &&
         at + 1 < list.size() && list[at + 1].kind == InstructionKind::Task;
}

/// `Order` is a list of tasks or of instructions.
template <typename Order>
bool isSecondOfPair(const Order &order, size_t at) {
  return at > 0 && isFirstOfPair(order, at - 1);
}

/// Where the task, or the pair that it is part of, begins and ends.
template <typename Order>
size_t beginOfPair(const Order &order, size_t at) {
  return at - isSecondOfPair(order, at);
}
template <typename Order>
size_t endOfPair(const Order &order, size_t at) {
  return at + 1 + isFirstOfPair(order, at);
}

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_PAIRS_H
