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
#include "runtime/calls/CollectiveKinds.h"

#include <vector>

namespace pipewright::schedules {

enum class TransferKind : uint8_t {
  /// Goes from the forward of an edge's `from` to the forward of its `to`.
  Forward,
  /// The gradient of the same tensor, which goes the other way.
  Gradient,
  /// Something of no edge (Work.h): `edge` is the number of the work.
  Work,
};

/// One tensor that goes from a rank to another, once.
struct Transfer {
  TransferKind kind = TransferKind::Forward;
  /// Index into the list of stage edges.
  int32_t edge = 0;
  int32_t microBatch = 0;

  static Transfer ofWork(int32_t number) {
    return {TransferKind::Work, number, 0};
  }
  bool operator==(const Transfer &other) const = default;
};

/// What the members of a group of ranks do together, each with the same range
/// of bytes.
using runtime::CollectiveKind;

/// Members of a group, in the order in which what they have is added.
using RankGroup = std::vector<int32_t>;

enum class InstructionKind : uint8_t {
  Task,
  /// Posts never block.
  PostSend,
  PostReceive,
  /// Complete the oldest outstanding send to, or receive from, the peer (of one
  /// channel, where there are several; see Channels.h).
  WaitSend,
  WaitReceive,
  /// It never blocks.
  PostCollective,
  /// Completes the rank's oldest outstanding collective, of whatever group.
  WaitCollective,
  /// Between a GPU and its host; a copy ends by itself. The wait completes the
  /// one of its transfer.
  PostCopy,
  WaitCopy,
};

struct RankInstruction {
  InstructionKind kind = InstructionKind::Task;
  /// Means something for collectives only.
  CollectiveKind collective = CollectiveKind::AllReduce;
  /// Means something for kind `Task` only.
  Task task = {};
  /// What moves, for the other kinds. In a wait it says which transfer or
  /// collective the wait completes.
  Transfer transfer = {};
  /// The other end of a transfer, the root of a collective that has one.
  int32_t peer = -1;
  /// The number of a collective's group (Channels.h).
  int32_t group = -1;
  /// The size of the message; a collective's is that of the whole range.
  int64_t bytes = 0;
  /// A post may start together with the next instruction, which is a post too.
  /// Between ncclGroupStart and ncclGroupEnd, or in one batch_isend_irecv,
  /// all sends and receives make progress, whatever their order.
  bool groupedWithNext = false;

  static RankInstruction compute(Task task) {
    RankInstruction instruction;
    instruction.task = task;
    return instruction;
  }
  static RankInstruction message(InstructionKind kind, Transfer transfer,
                                 int32_t peer, int64_t bytes) {
    RankInstruction instruction;
    instruction.kind = kind;
    instruction.transfer = transfer;
    instruction.peer = peer;
    instruction.bytes = bytes;
    return instruction;
  }
  /// `transfer` is that of a work.
  static RankInstruction together(InstructionKind kind,
                                  CollectiveKind collective, Transfer transfer,
                                  int32_t group, int64_t bytes,
                                  int32_t root = -1) {
    RankInstruction instruction = message(kind, transfer, root, bytes);
    instruction.collective = collective;
    instruction.group = group;
    return instruction;
  }
  /// Whether it is of a channel from rank to rank.
  bool isMessage() const {
    return kind != InstructionKind::Task && !isCollective() && !isCopy();
  }
  /// `transfer` is that of a work.
  static RankInstruction copy(InstructionKind kind, Transfer transfer,
                              int64_t bytes) {
    return message(kind, transfer, /*peer=*/-1, bytes);
  }
  bool isCopy() const {
    return kind == InstructionKind::PostCopy ||
           kind == InstructionKind::WaitCopy;
  }
  bool isCollective() const {
    return kind == InstructionKind::PostCollective ||
           kind == InstructionKind::WaitCollective;
  }

  bool operator==(const RankInstruction &other) const = default;
};

/// Indexed by rank.
using InstructionLists = std::vector<std::vector<RankInstruction>>;

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_INSTRUCTION_H
