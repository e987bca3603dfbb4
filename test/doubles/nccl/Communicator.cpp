//===- Communicator.cpp - State of the NCCL double ------------------------===//

#include "test/doubles/nccl/Communicator.h"
#include "test/doubles/cuda/Device.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

using namespace pipewright::doubles;

namespace {
/// What two ranks say to each other when they meet.
struct Greeting {
  int64_t rank = 0;
  int64_t isOut = 0;
  int64_t gpu = 0;
  /// CUDA_VISIBLE_DEVICES: GPU 0 of one process may not be that of another.
  char visible[64] = {};
};
} // namespace

static void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

bool pipewright::doubles::finishAll(std::vector<Exchange> exchanges,
                                    const std::function<bool()> &stop) {
  while (!exchanges.empty()) {
    if (stop())
      return false;
    std::vector<std::pair<int, short>> sockets;
    for (size_t i = 0; i < exchanges.size();) {
      const Exchange::Status status = exchanges[i].step();
      if (status == Exchange::Status::Broken)
        return false;
      if (status == Exchange::Status::Done) {
        exchanges.erase(exchanges.begin() + static_cast<ptrdiff_t>(i));
        continue;
      }
      sockets.emplace_back(exchanges[i].descriptor(), exchanges[i].events());
      ++i;
    }
    if (!sockets.empty())
      sleepFor(sockets);
  }
  return true;
}

Communicator::Communicator(std::string id, int rank, int size, bool blocking,
                           int color)
    : id(std::move(id)), rank(rank), ranks(size), blocking(blocking),
      color(color), peers(size) {
  cuCtxGetCurrent(&context);
  CUdevice device = 0;
  cuCtxGetDevice(&device);
  gpu = device;
  listener = listenAs(nameOf(rank));
}

void Communicator::setState(ncclResult_t result, const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex);
  // The first error stays.
  const ncclResult_t now = current;
  if (now != ncclSuccess && now != ncclInProgress)
    return;
  if (!why.empty())
    setLastError(why);
  current = result;
  changed.notify_all();
}

// --- Meeting -----------------------------------------------------------------

bool Communicator::exchange(const Descriptor &socket, const void *out, void *in,
                            size_t bytes) {
  return finishAll({Exchange(socket.get(), out, bytes, in, bytes)},
                   [this] { return aborted.load(); });
}

bool Communicator::greet(int peer, Descriptor &socket, bool isOut) {
  Greeting own, other;
  own.rank = rank;
  own.isOut = isOut;
  own.gpu = gpu;
  if (const char *visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    std::strncpy(own.visible, visible, sizeof own.visible - 1);
  if (!exchange(socket, &own, &other, sizeof own))
    return false;
  const char *shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (own.gpu == other.gpu && !std::strcmp(own.visible, other.visible) &&
      !(shared && std::atoi(shared))) {
    setState(ncclInvalidUsage,
             "Duplicate GPU detected : rank " + std::to_string(rank) +
                 " and rank " + std::to_string(other.rank) +
                 " both on CUDA device " + std::to_string(gpu));
    return false;
  }
  PeerChannels &channels = peers[peer < 0 ? other.rank : peer];
  const bool ours = peer < 0 ? !other.isOut : isOut;
  (ours ? channels.out : channels.in) = std::move(socket);
  return true;
}

/// Calls a rank before this one until it answers, once for each direction.
bool Communicator::connectTo(int peer) {
  for (const bool isOut : {true, false}) {
    Descriptor socket;
    while (!(socket = connectAs(nameOf(peer)))) {
      if (aborted)
        return false;
      nap();
    }
    if (!greet(peer, socket, isOut))
      return false;
  }
  return true;
}

bool Communicator::acceptAll() {
  for (int expected = 2 * (ranks - 1 - rank); expected > 0;) {
    if (aborted)
      return false;
    Descriptor socket = acceptFrom(listener, 5);
    if (!socket)
      continue;
    if (!greet(-1, socket, false))
      return false;
    --expected;
  }
  return true;
}

void Communicator::meet() {
  while (neverMeets() && !aborted)
    nap();
  if (!listener)
    return setState(ncclInvalidUsage, "two ranks with the same number");
  for (int peer = 0; peer < rank; ++peer)
    if (!connectTo(peer))
      return setState(ncclRemoteError, "a rank went away while it connected");
  if (!acceptAll())
    return setState(ncclRemoteError, "a rank went away while it connected");
  listener = Descriptor();
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < connectTime() && !aborted)
    nap();
  setState(ncclSuccess);
}

// --- First use ---------------------------------------------------------------

static const char hello = 'C';
static const char goodbye = 'F';
/// What the other end's greeting is read into; nobody looks at it.
static thread_local char answers[4096];

/// Peers and directions; a collective uses all of them.
std::vector<std::pair<int, bool>>
Communicator::channelsOf(const Group &group) const {
  std::vector<std::pair<int, bool>> used;
  for (const Call &call : group.calls)
    used.emplace_back(call.peer, call.isSend);
  for (int peer = 0; peer < ranks && !group.collectives.empty(); ++peer) {
    used.emplace_back(peer, true);
    used.emplace_back(peer, false);
  }
  return used;
}

std::vector<Exchange> Communicator::firstUses(const Group &group) {
  std::vector<Exchange> exchanges;
  std::vector<const Descriptor *> seen;
  for (const auto &[number, isSend] : channelsOf(group)) {
    const PeerChannels &peer = peers[number];
    const Descriptor &channel = isSend ? peer.out : peer.in;
    if ((isSend ? peer.outConnected : peer.inConnected) || number == rank ||
        std::find(seen.begin(), seen.end(), &channel) != seen.end())
      continue;
    seen.push_back(&channel);
    exchanges.emplace_back(channel.get(), &hello, 1,
                           &answers[exchanges.size() % sizeof answers], 1);
  }
  return exchanges;
}

void Communicator::markConnected(const Group &group) {
  for (const auto &[number, isSend] : channelsOf(group))
    (isSend ? peers[number].outConnected : peers[number].inConnected) = true;
}

// --- Running -----------------------------------------------------------------

ncclResult_t Communicator::launch(const std::shared_ptr<Group> &group) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(group);
  }
  for (CUstream stream : group->streams) {
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    cuStreamIsCapturing(stream, &capturing);
    if (capturing != CU_STREAM_CAPTURE_STATUS_NONE) {
      setLastError("the double runs no transfers of CUDA graphs");
      return ncclInvalidUsage;
    }
    Operation operation;
    operation.name = !group->collectives.empty() ? group->collectives[0].name()
                     : group->calls[0].isSend    ? "ncclSend"
                                                 : "ncclRecv";
    for (const Call &call : group->calls)
      if (call.stream == stream)
        operation.accesses.push_back({call.data, call.bytes, !call.isSend});
    for (const CollectiveCall &call : group->collectives) {
      if (call.stream != stream)
        continue;
      if (const size_t bytes = call.sendBytes(rank, ranks))
        operation.accesses.push_back({call.send, bytes, false});
      if (const size_t bytes = call.receiveBytes(rank, ranks))
        operation.accesses.push_back({call.receive, bytes, true});
    }
    operation.run = [self = shared_from_this(), group] { self->run(group); };
    if (enqueue(stream, std::move(operation)) != CUDA_SUCCESS) {
      setLastError("cannot enqueue on a stream");
      return ncclUnhandledCudaError;
    }
  }
  return ncclSuccess;
}

/// On the thread of one of the group's streams, which goes no further until
/// the group is done.
void Communicator::run(const std::shared_ptr<Group> &group) {
  std::unique_lock<std::mutex> lock(mutex);
  const bool isLast = ++group->arrived == group->streams.size();
  if (!isLast) {
    changed.wait(lock, [&] { return group->done || aborted; });
    return;
  }
  changed.wait(lock, [&] { return queue.front() == group || aborted; });
  if (aborted)
    return;
  lock.unlock();
  occupy(context);
  try {
    execute(*group);
  } catch (const DeviceFault &fault) {
    setState(ncclUnhandledCudaError, fault.what());
    vacate(context);
    throw;
  }
  vacate(context);
  lock.lock();
  if (aborted)
    return;
  group->done = true;
  queue.pop_front();
  changed.notify_all();
}

bool Communicator::matchesItself(const Group &group) const {
  std::vector<size_t> sends, receives;
  for (const Call &call : group.calls)
    if (call.peer == rank)
      (call.isSend ? sends : receives).push_back(call.bytes);
  return sends == receives;
}

/// Sends to itself meet receives from itself, in order.
static void copyToItself(const Group &group, int rank) {
  std::vector<const Call *> sends, receives;
  for (const Call &call : group.calls)
    if (call.peer == rank)
      (call.isSend ? sends : receives).push_back(&call);
  for (size_t i = 0; i < sends.size(); ++i)
    std::memmove(map(receives[i]->data, receives[i]->bytes, "ncclRecv"),
                 map(sends[i]->data, sends[i]->bytes, "ncclSend"),
                 sends[i]->bytes);
}

/// Returns when all is done, or when the communicator was aborted.
void Communicator::execute(Group &group) {
  copyToItself(group, rank);
  bool broken = false;
  Channels channels;
  for (const Call &call : group.calls) {
    if (call.peer == rank)
      continue;
    const Fault fault = strike();
    broken |= fault == Fault::Stall;
    if (fault == Fault::Error)
      setState(ncclSystemError, "the environment asked for this error");
    const PeerChannels &peer = peers[call.peer];
    const int socket = (call.isSend ? peer.out : peer.in).get();
    channels[socket].emplace_back(
        socket, call.isSend,
        map(call.data, call.bytes, call.isSend ? "ncclSend" : "ncclRecv"),
        Ready{call.bytes, static_cast<uint64_t>(call.type)});
  }
  drive(std::move(channels), broken);
  for (const CollectiveCall &call : group.collectives)
    if (!aborted)
      execute(call);
}

/// Goes on until all transfers are over, or the communicator was aborted.
void Communicator::drive(Channels channels, bool broken) {
  broken |= current != ncclSuccess && current != ncclInProgress;
  while (!channels.empty() && !aborted) {
    std::vector<std::pair<int, short>> sockets;
    for (auto channel = channels.begin(); channel != channels.end();) {
      std::deque<Transfer> &transfers = channel->second;
      const Exchange::Status status =
          broken ? Exchange::Status::Working : transfers.front().step();
      if (status == Exchange::Status::Done)
        transfers.pop_front();
      if (status == Exchange::Status::Broken && !aborted) {
        setState(ncclRemoteError, "a peer has closed its connection");
        broken = true;
      }
      if (!broken && !transfers.empty())
        sockets.emplace_back(transfers.front().descriptor(),
                             transfers.front().events());
      channel = transfers.empty() ? channels.erase(channel) : ++channel;
    }
    if (!channels.empty())
      sleepFor(sockets);
  }
}

// --- Ending ------------------------------------------------------------------

void Communicator::finalize() {
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return queue.empty() || aborted; });
  }
  std::vector<Exchange> exchanges;
  for (const PeerChannels &peer : peers)
    for (const Descriptor *channel : {&peer.out, &peer.in})
      if (*channel)
        exchanges.emplace_back(channel->get(), &goodbye, 1,
                               &answers[exchanges.size() % sizeof answers], 1);
  if (!finishAll(std::move(exchanges), [this] { return aborted.load(); }))
    return setState(ncclRemoteError, "a rank went away before the end");
  setState(ncclSuccess);
}

void Communicator::abort() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    aborted = true;
    for (const PeerChannels &peer : peers) {
      peer.out.cut();
      peer.in.cut();
    }
    changed.notify_all();
  }
  // To give back memory the driver waits until the GPU is idle.
  waitUntilVacant(context);
}
