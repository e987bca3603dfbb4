//===- MessageOrder.h - Where posts and waits go ----------------*- C++ -*-===//
//
// Turns a schedule into one instruction list per rank. All messages are
// ordered by predicted production time, which cannot deadlock under any
// buffering and lets copies overlap with compute; "receive as soon as the
// sender sends" and "receive just before use" both lose (the comment in the
// .cpp says how).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_MESSAGEORDER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_MESSAGEORDER_H

#include "passes/schedules/Channels.h"
#include "passes/schedules/Instruction.h"
#include "passes/schedules/Simulator.h"

namespace pipewright::schedules {

/// Each rank's tasks in the schedule's order, with the posts and waits of the
/// transfers between ranks. An edge between two stages of one rank makes no
/// transfer. An empty list of edges means that stage s feeds stage s+1; give
/// the bytes for everything else. Costs need not be exact: any will do for
/// safety, good ones for overlap. The lists are safe without buffering on
/// channels of `layout`, and so with any. Works are in them where they say, in
/// their order (WorkOrder.h); `groupOfWork` numbers the groups of those on
/// groups.
llvm::Expected<InstructionLists>
orderMessages(const Schedule &schedule, const TaskCosts &costs,
              llvm::ArrayRef<StageEdge> edges = {},
              ChannelLayout layout = ChannelLayout::Link,
              llvm::ArrayRef<Work> works = {},
              llvm::ArrayRef<int32_t> groupOfWork = {});

/// The same costs with no task and no message that takes no time at all.
TaskCosts withPositiveTimes(TaskCosts costs);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_MESSAGEORDER_H
