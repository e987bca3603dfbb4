//===- Communicator.h - State of the NCCL double ---------------*- C++ -*-===//
//
// What the double keeps of NCCL's semantics:
//
// - a communicator is one FIFO: its groups run in the order in which the host
//   launched them, on whatever streams; a group with several streams joins
//   them; within a group, transfers of different channels go on together;
// - a send waits for its receive, and nothing has a tag; a collective waits for
//   all ranks, and hangs where they differ;
// - a communicator is in progress until all ranks have come; the first use of
//   a channel is a handshake of both hosts, before anything is launched;
// - non-blocking: a thread of the double launches, so that what the caller
//   enqueues before the state is ncclSuccess again may come first;
// - a peer that goes away is ncclRemoteError, and the stream stays stuck until
//   ncclCommAbort;
// - a split is one of all ranks, of which none has work outstanding; the new
//   communicator is there once the old one is ready again.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H
#define PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H

#include "test/doubles/nccl/Channel.h"

#include <cuda.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pipewright::doubles {

/// An ncclSend or ncclRecv.
struct Call {
  bool isSend = false;
  void *data = nullptr;
  size_t bytes = 0;
  ncclDataType_t type = ncclInt8;
  int peer = 0;
  CUstream stream = nullptr;
};

/// An ncclAllReduce, or what is like it.
struct CollectiveCall {
  enum Kind { AllReduce = 1, Reduce, ReduceScatter, AllGather, Broadcast };

  Kind kind = AllReduce;
  const void *send = nullptr;
  void *receive = nullptr;
  /// As NCCL counts: of one rank's part.
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int root = 0;
  CUstream stream = nullptr;
  /// Of one number.
  size_t width = 0;

  const char *name() const;
  /// Bytes that a rank's call reads and writes.
  size_t sendBytes(int rank, int ranks) const;
  size_t receiveBytes(int rank, int ranks) const;
  /// Whether the buffers overlap, other than NCCL's "in place".
  bool overlapsWrongly(int rank, int ranks) const;
};

/// What one communicator got between ncclGroupStart and ncclGroupEnd.
struct Group {
  std::vector<Call> calls;
  std::vector<CollectiveCall> collectives;
  /// Without repetitions.
  std::vector<CUstream> streams;
  size_t arrived = 0;
  bool done = false;
};

/// A rank as another one sees it: a channel each way.
struct PeerChannels {
  Descriptor out, in;
  /// Both hosts have used it.
  bool outConnected = false, inConnected = false;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
public:
  /// `color`: that of the split that made it.
  Communicator(std::string id, int rank, int size, bool blocking,
               int color = 0);

  /// Meets the other ranks. Sets the state when it is over.
  void meet();
  /// Whether sends of the rank to itself have their receives in the group.
  bool matchesItself(const Group &group) const;
  /// Handshakes of the channels that the group uses for the first time.
  std::vector<Exchange> firstUses(const Group &group);
  void markConnected(const Group &group);
  /// Puts the group on its streams.
  ncclResult_t launch(const std::shared_ptr<Group> &group);
  /// Ends together with the other ranks.
  void finalize();
  void abort();
  /// Whether nothing is outstanding.
  bool isIdle();
  /// The communicator of all ranks that give the same color, ordered by key;
  /// null for NCCL_SPLIT_NOCOLOR, or when a rank went away.
  std::shared_ptr<Communicator> split(int color, int key, bool isBlocking);

  ncclResult_t state() const { return current; }
  void setState(ncclResult_t result, const std::string &why = "");
  bool isAborted() const { return aborted; }
  bool isBlocking() const { return blocking; }
  int size() const { return ranks; }
  int number() const { return rank; }
  CUcontext gpuContext() const { return context; }

private:
  std::vector<std::pair<int, bool>> channelsOf(const Group &group) const;
  bool greet(int peer, Descriptor &socket, bool isOut);
  bool connectTo(int peer);
  bool acceptAll();
  bool exchange(const Descriptor &socket, const void *out, void *in,
                size_t bytes);
  void run(const std::shared_ptr<Group> &group);
  /// By channel: those of one go in order, others go on beside them.
  using Channels = std::map<int, std::deque<Transfer>>;
  void execute(Group &group);
  void execute(const CollectiveCall &call);
  void drive(Channels channels, bool broken);
  std::string nameOf(int rank) const { return id + "." + std::to_string(rank); }

  const std::string id;
  const int rank, ranks;
  const bool blocking;
  const int color;
  CUcontext context = nullptr;
  int gpu = 0;
  Descriptor listener;
  std::vector<PeerChannels> peers;
  int splits = 0;

  std::atomic<ncclResult_t> current{ncclInProgress};
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  std::condition_variable changed;
  /// In the order of the host.
  std::deque<std::shared_ptr<Group>> queue;
};

/// Goes on with all exchanges until they are done. False: one is broken, or
/// `stop` said so.
bool finishAll(std::vector<Exchange> exchanges,
               const std::function<bool()> &stop);

/// What ncclGetLastError returns.
void setLastError(const std::string &text);

/// The environment asks that no communicator ever finds its other ranks.
bool neverMeets();

/// How long a communicator takes after all of its ranks have come.
std::chrono::microseconds connectTime();

/// The environment asks that no abort ever comes to an end.
bool neverAborts();

/// The n-th transfer of the process (from 1) meets what the environment asks
/// for: a delay, the end of the process, or what is returned.
enum class Fault { None, Error, Stall };
Fault strike();

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H
