//===- Checker.h - Proves or refuses what others made -----------*- C++ -*-===//
//
// Four questions, for orders and instruction lists of any origin: is each task
// run once and where its stage is, can it run at all, does it run with the
// queues and buffers that messages have, and does it fit into memory. A refusal
// tells which rank waits where, for what, from whom, and why that never comes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_CHECKER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_CHECKER_H

#include "passes/schedules/Channels.h"
#include "passes/schedules/Instruction.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <string>

namespace pipewright::schedules {

/// Each stage has a rank; each rank runs exactly the tasks of its stages: F
/// once, B once or I and W once, R at most once, U once; and the order can run
/// to its end. An empty list of edges means that stage s feeds stage s+1.
llvm::Error checkSchedule(const Schedule &schedule,
                          llvm::ArrayRef<StageEdge> edges = {});

using NameOfTransfer = llvm::function_ref<std::string(const Transfer &)>;

/// On each channel, sends and receives are the same transfers in the same
/// order with the same sizes; each is waited for once at either end; members of
/// a group do the same together (Collectives.h); and every list runs to its end
/// under the given rules, by default without any buffering and with a queue for
/// each directed link. Knows nothing of stages, so works are fine.
llvm::Error checkInstructions(const InstructionLists &lists,
                              NameOfTransfer nameOfTransfer,
                              const Channels &channels = {});
/// The same with `defaultTransferName`.
llvm::Error checkInstructions(const InstructionLists &lists,
                              const Channels &channels = {});

/// The lists run the schedule's tasks in the schedule's order; what a task
/// needs from another rank has been waited for before it starts, and what is
/// sent has been computed. Works are ignored.
llvm::Error checkDataFlow(const Schedule &schedule,
                          const InstructionLists &lists,
                          llvm::ArrayRef<StageEdge> edges = {});

/// No rank ever keeps more stashed than its limit, in the schedule's order at
/// whatever speed. `limitBytes` has one limit for each rank, or one for all.
llvm::Error checkMemory(const Schedule &schedule, const TaskCosts &costs,
                        llvm::ArrayRef<int64_t> limitBytes,
                        llvm::ArrayRef<StageEdge> edges = {},
                        llvm::ArrayRef<Work> works = {});

/// `output of edge 2, micro-batch 0`
std::string defaultTransferName(const Transfer &transfer);
/// `the output of stage 2 for stage 3, micro-batch 0`; the default name of a
/// work, and of what goes along an edge that does not exist.
std::string transferName(const Transfer &transfer,
                         llvm::ArrayRef<StageEdge> edges);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_CHECKER_H
