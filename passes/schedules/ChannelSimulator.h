//===- ChannelSimulator.h - When each message moves -------------*- C++ -*-===//
//
// The timeline of instruction lists under the rules of Channels.h. Where
// Simulator.h lets data arrive as soon as the wire allows, here it also waits
// for its place in the queues of both ranks and for the posts in their lists:
// what an order of messages costs.
//
// Ranks compute and queues move at the same time. Without buffering, a message
// occupies its queue at both ends from its start until its arrival, which is
// its bytes over the bandwidth and then the latency. With buffers it occupies
// the sender's queue for its bytes only, and the receiver's while it is at its
// head. Posts and waits take no time. Channels do not take bandwidth from each
// other. An overlapped pair with a post or wait between its tasks runs one
// after the other.
//
// Collectives are tasks of a second resource of each rank, one after the other:
// one starts when all its members have come to it, and ends for all at once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_CHANNELSIMULATOR_H
#define PIPEWRIGHT_PASSES_SCHEDULES_CHANNELSIMULATOR_H

#include "passes/schedules/Channels.h"
#include "passes/schedules/Simulator.h"

namespace pipewright::schedules {

struct TransferTime {
  Transfer transfer;
  int32_t from = 0, to = 0;
  /// It starts at the head of the sender's queue, and ends when it is received.
  double start = 0;
  double end = 0;
};

struct CollectiveTime {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Transfer transfer;
  int32_t group = 0;
  /// It starts when all members have come.
  double start = 0;
  double end = 0;
};

struct ChannelSimulation {
  /// The tasks of each rank, in order.
  std::vector<std::vector<TaskTime>> times;
  /// Last end minus first start of tasks over all ranks.
  double globalStepTime = 0;
  /// The longest rank, from its own first start to its own last end.
  double spanStepTime = 0;
  /// Seconds of each rank in waits for sends, receives and collectives.
  std::vector<double> sendWaits, receiveWaits, collectiveWaits;
  /// Sorted by channel, and then in the channel's order.
  std::vector<TransferTime> transfers;
  /// Sorted by group, and then in the group's order.
  std::vector<CollectiveTime> collectives;
};

/// Fails, with the checker's message, on lists that are not safe on these
/// channels, on tasks of stages without costs, and on wrong costs. Transfers
/// take the bytes that their posts say.
llvm::Expected<ChannelSimulation>
simulateInstructions(const InstructionLists &lists, const TaskCosts &costs,
                     const Channels &channels = {});

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_CHANNELSIMULATOR_H
