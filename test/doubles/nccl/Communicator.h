//===- Communicator.h - State of the NCCL double ---------------*- C++ -*-===//
//
// What the double keeps of NCCL's semantics:
//
// - a communicator is one FIFO: its groups run in the order in which the host
//   launched them, on whatever streams; a group with several streams joins
//   them; within a group, transfers of different channels go on together;
// - a send waits for its receive, and nothing has a tag;
// - a communicator is in progress until all ranks have come; the first use of
//   a channel is a handshake of both hosts, before anything is launched;
// - non-blocking: a thread of the double launches, so that what the caller
//   enqueues before the state is ncclSuccess again may come first;
// - a peer that goes away is ncclRemoteError, and the stream stays stuck until
//   ncclCommAbort.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H
#define PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H

#include "test/doubles/nccl/Channel.h"

#include <cuda.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
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

/// What one communicator got between ncclGroupStart and ncclGroupEnd.
struct Group {
  std::vector<Call> calls;
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
  Communicator(std::string id, int rank, int size, bool blocking);

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

  ncclResult_t state() const { return current; }
  void setState(ncclResult_t result, const std::string &why = "");
  bool isAborted() const { return aborted; }
  bool isBlocking() const { return blocking; }
  int size() const { return ranks; }
  CUcontext gpuContext() const { return context; }

private:
  bool greet(int peer, Descriptor &socket, bool isOut);
  bool connectTo(int peer);
  bool acceptAll();
  bool exchange(const Descriptor &socket, const void *out, void *in,
                size_t bytes);
  void run(const std::shared_ptr<Group> &group);
  void execute(Group &group);
  std::string nameOf(int rank) const { return id + "." + std::to_string(rank); }

  const std::string id;
  const int rank, ranks;
  const bool blocking;
  CUcontext context = nullptr;
  int gpu = 0;
  Descriptor listener;
  std::vector<PeerChannels> peers;

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

/// The environment asks that no abort ever comes to an end.
bool neverAborts();

/// The n-th transfer of the process (from 1) meets what the environment asks
/// for: a delay, the end of the process, or what is returned.
enum class Fault { None, Error, Stall };
Fault strike();

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_NCCL_COMMUNICATOR_H
