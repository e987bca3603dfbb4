//===- Instruction.h - What a rank does, messages included ------*- C++ -*-===//
//
// A rank's program after its messages are ordered: compute tasks with posts
// and waits between them, with the meaning that runtime/README.md gives to a
// transport.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_INSTRUCTION_H
#define PIPEWRIGHT_PASSES_SCHEDULES_INSTRUCTION_H

#include "passes/schedules/Task.h"

#include <vector>

namespace pipewright::schedules {

enum class TransferKind : uint8_t {
  /// From the forward of an edge's `from` to the forward of its `to`.
  Forward,
  /// The gradient of the same tensor, the other way.
  Gradient,
  /// The caller's own: gradients of tied weights, norms, ... `edge` and
  /// `microBatch` are the caller's numbers.
  Extra,
};

/// One tensor that goes from a rank to another, once.
struct Transfer {
  TransferKind kind = TransferKind::Forward;
  /// Index into the list of stage edges.
  int32_t edge = 0;
  int32_t microBatch = 0;

  bool operator==(const Transfer &other) const = default;
};

enum class InstructionKind : uint8_t {
  Task,
  /// Never block.
  PostSend,
  PostReceive,
  /// Complete the oldest outstanding send to, or receive from, the peer (of one
  /// channel, where there are several; see Channels.h).
  WaitSend,
  WaitReceive,
};

struct RankInstruction {
  InstructionKind kind = InstructionKind::Task;
  /// Of kind `Task` only.
  Task task;
  /// Of the other kinds. In a wait it says which transfer the wait completes.
  Transfer transfer;
  int32_t peer = -1;
  int64_t bytes = 0;
  /// Of posts only: starts together with the next instruction, which is a post
  /// too. Between ncclGroupStart and ncclGroupEnd, or in one batch_isend_irecv,
  /// all sends and receives make progress, whatever their order.
  bool groupedWithNext = false;

  static RankInstruction compute(Task task) {
    RankInstruction instruction;
    instruction.task = task;
    return instruction;
  }
  static RankInstruction message(InstructionKind kind, Transfer transfer,
                                 int32_t peer, int64_t bytes) {
    return {kind, Task(), transfer, peer, bytes};
  }

  bool operator==(const RankInstruction &other) const = default;
};

/// Indexed by rank.
using InstructionLists = std::vector<std::vector<RankInstruction>>;

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_INSTRUCTION_H
