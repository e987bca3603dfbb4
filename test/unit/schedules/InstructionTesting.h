//===- InstructionTesting.h - Short instruction lists by hand ---*- C++ -*-===//
//
// Messages named by numbers, and what the checker says of lists of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_SCHEDULES_INSTRUCTIONTESTING_H
#define PIPEWRIGHT_TEST_UNIT_SCHEDULES_INSTRUCTIONTESTING_H

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"

namespace pipewright::schedules::testing {

/// A message that is no edge of the model; the checker names it `x<number>`.
inline RankInstruction message(InstructionKind kind, int32_t number,
                               int32_t peer, int64_t bytes = 8) {
  return RankInstruction::message(kind, Transfer::ofWork(number), peer, bytes);
}
inline RankInstruction postSend(int32_t number, int32_t peer) {
  return message(InstructionKind::PostSend, number, peer);
}
inline RankInstruction postReceive(int32_t number, int32_t peer) {
  return message(InstructionKind::PostReceive, number, peer);
}
inline RankInstruction waitSend(int32_t number, int32_t peer) {
  return message(InstructionKind::WaitSend, number, peer);
}
inline RankInstruction waitReceive(int32_t number, int32_t peer) {
  return message(InstructionKind::WaitReceive, number, peer);
}
inline RankInstruction task(int32_t stage, int32_t microBatch) {
  return RankInstruction::compute(Task::forward(stage, microBatch));
}

/// What the checker says of lists, on channels that are without buffers and one
/// for each link, unless others are named.
inline std::string refusalOf(const InstructionLists &lists,
                             const Channels &channels = {}) {
  auto name = [](const Transfer &transfer) {
    return "x" + std::to_string(transfer.edge);
  };
  return messageOf(checkInstructions(lists, name, channels));
}

} // namespace pipewright::schedules::testing

#endif // PIPEWRIGHT_TEST_UNIT_SCHEDULES_INSTRUCTIONTESTING_H
