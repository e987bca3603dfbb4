//===- Collectives.cpp - Sums and copies of all ranks, and splits ---------===//
//
// Every rank gives its input to whoever needs it, and adds what it has got in
// the order of a ring that begins behind the part's owner, or further on, by
// the color of the split that made the communicator: as NCCL, in an order that
// is not the order of the ranks, nor that of other communicators, and with one
// rounding for each.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BFloat16.h"
#include "test/doubles/cuda/Device.h"
#include "test/doubles/nccl/Communicator.h"

#include <cstring>
#include <map>
#include <thread>
#include <tuple>

using namespace pipewright::doubles;

const char *CollectiveCall::name() const {
  switch (kind) {
  case AllReduce:
    return "ncclAllReduce";
  case Reduce:
    return "ncclReduce";
  case ReduceScatter:
    return "ncclReduceScatter";
  case AllGather:
    return "ncclAllGather";
  case Broadcast:
    return "ncclBroadcast";
  }
  return "no collective";
}

size_t CollectiveCall::sendBytes(int rank, int ranks) const {
  const size_t bytes = count * width;
  return kind == ReduceScatter               ? bytes * ranks
         : kind == Broadcast && rank != root ? 0
                                             : bytes;
}

size_t CollectiveCall::receiveBytes(int rank, int ranks) const {
  const size_t bytes = count * width;
  return kind == AllGather                ? bytes * ranks
         : kind == Reduce && rank != root ? 0
                                          : bytes;
}

bool CollectiveCall::overlapsWrongly(int rank, int ranks) const {
  const size_t sent = sendBytes(rank, ranks),
               received = receiveBytes(rank, ranks);
  const char *from = static_cast<const char *>(send);
  const char *to = static_cast<const char *>(receive);
  if (!sent || !received || from + sent <= to || to + received <= from)
    return false;
  // In place is where the own part of the whole range is.
  const size_t own = rank * count * width;
  return kind == ReduceScatter ? to != from + own
         : kind == AllGather   ? from != to + own
                               : from != to;
}

/// Whether that rank's input is wanted by this one, and where it begins.
static std::pair<bool, size_t> partFor(const CollectiveCall &call, int from,
                                       int to) {
  switch (call.kind) {
  case CollectiveCall::AllReduce:
  case CollectiveCall::AllGather:
    return {true, 0};
  case CollectiveCall::ReduceScatter:
    return {true, to * call.count * call.width};
  case CollectiveCall::Reduce:
    return {to == call.root, 0};
  case CollectiveCall::Broadcast:
    return {from == call.root, 0};
  }
  return {false, 0};
}

static float read(const std::vector<char> &from, size_t i,
                  ncclDataType_t type) {
  if (type == ncclBfloat16) {
    uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * i, 2);
    return pipewright::runtime::widen(bits);
  }
  float value = 0;
  std::memcpy(&value, from.data() + 4 * i, 4);
  return value;
}

static void write(float value, char *to, size_t i, ncclDataType_t type) {
  const uint16_t bits = pipewright::runtime::narrow(value);
  if (type == ncclBfloat16)
    std::memcpy(to + 2 * i, &bits, 2);
  else
    std::memcpy(to + 4 * i, &value, 4);
}

/// `parts` by rank; the ring of element i begins `distance` behind its owner.
static void add(const CollectiveCall &call, int rank, int distance,
                std::vector<std::vector<char>> &parts, char *to) {
  const size_t ranks = parts.size();
  for (size_t i = 0; i < call.count; ++i) {
    const size_t owner = call.kind == CollectiveCall::AllReduce
                             ? i * ranks / call.count
                             : static_cast<size_t>(rank);
    const size_t begin = owner + distance;
    std::vector<char> &first = parts[begin % ranks];
    for (size_t k = 1; k < ranks; ++k)
      write(read(first, i, call.type) +
                read(parts[(begin + k) % ranks], i, call.type),
            first.data(), i, call.type);
    std::memcpy(to + i * call.width, first.data() + i * call.width, call.width);
  }
}

/// Returns when all is done, or when the communicator was aborted.
void Communicator::execute(const CollectiveCall &call) {
  const size_t bytes = call.count * call.width;
  const Fault fault = strike();
  if (fault == Fault::Error)
    setState(ncclSystemError, "the environment asked for this error");
  std::vector<char> input(call.sendBytes(rank, ranks));
  if (!input.empty())
    std::memcpy(input.data(), map(call.send, input.size(), call.name()),
                input.size());
  // Whoever gives something else waits for ever.
  const Ready what = {bytes, static_cast<uint64_t>(call.type) |
                                 static_cast<uint64_t>(call.kind) << 8 |
                                 static_cast<uint64_t>(call.root) << 16};
  std::vector<std::vector<char>> parts(ranks);
  Channels channels;
  for (int peer = 0; peer < ranks; ++peer) {
    const auto [mine, mineAt] = partFor(call, rank, peer);
    const auto [theirs, theirsAt] = partFor(call, peer, rank);
    if (theirs)
      parts[peer].resize(bytes);
    if (peer == rank) {
      if (mine)
        std::memcpy(parts[rank].data(), input.data() + mineAt, bytes);
      continue;
    }
    const PeerChannels &sockets = peers[peer];
    if (mine)
      channels[sockets.out.get()].emplace_back(sockets.out.get(), true,
                                               input.data() + mineAt, what);
    if (theirs)
      channels[sockets.in.get()].emplace_back(sockets.in.get(), false,
                                              parts[peer].data(), what);
  }
  drive(std::move(channels), fault == Fault::Stall);
  const size_t received = call.receiveBytes(rank, ranks);
  if (aborted || !received)
    return;
  char *to = static_cast<char *>(map(call.receive, received, call.name()));
  if (call.kind == CollectiveCall::AllGather)
    for (int r = 0; r < ranks; ++r)
      std::memcpy(to + r * bytes, parts[r].data(), bytes);
  else if (call.kind == CollectiveCall::Broadcast)
    std::memcpy(to, parts[call.root].data(), bytes);
  else
    add(call, rank, 1 + color, parts, to);
}

// --- Splits ------------------------------------------------------------------

bool Communicator::isIdle() {
  std::lock_guard<std::mutex> lock(mutex);
  return queue.empty();
}

std::shared_ptr<Communicator> Communicator::split(int color, int key,
                                                  bool isBlocking) {
  struct Wish {
    int color, key;
  };
  const Wish own = {color, key};
  std::vector<Wish> wishes(ranks, own);
  std::vector<Exchange> exchanges;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank)
      continue;
    exchanges.emplace_back(peers[peer].out.get(), &own, sizeof own, nullptr, 0);
    exchanges.emplace_back(peers[peer].in.get(), nullptr, 0, &wishes[peer],
                           sizeof own);
  }
  ++splits;
  if (!finishAll(std::move(exchanges), [this] { return aborted.load(); })) {
    setState(ncclRemoteError, "a rank went away in a split");
    return nullptr;
  }
  if (color == NCCL_SPLIT_NOCOLOR)
    return nullptr;
  int size = 0, number = 0;
  for (int r = 0; r < ranks; ++r)
    if (wishes[r].color == color) {
      ++size;
      number += std::tie(wishes[r].key, r) < std::tie(key, rank);
    }
  return std::make_shared<Communicator>(id + "/" + std::to_string(splits) +
                                            "." + std::to_string(color),
                                        number, size, isBlocking, color);
}
