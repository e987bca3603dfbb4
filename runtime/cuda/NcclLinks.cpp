//===- NcclLinks.cpp - Transfers between GPUs by NCCL ---------------------===//

#include "runtime/cuda/NcclLinks.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/NcclCalls.h"
#include "runtime/cuda/NcclGroups.h"
#include "runtime/cuda/NcclMemory.h"
#include "runtime/cuda/Rounds.h"
#include "runtime/cuda/SizeNotices.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

using namespace pipewright::runtime;

namespace {

/// One end of a directed link.
struct Link {
  int64_t from = 0, to = 0;
  /// When it is made: see Rounds.h.
  int64_t round = 0;
  NcclCommunicator *communicator = nullptr;
  ncclUniqueId id = {};

  ncclComm_t comm() const { return communicator->handle; }
};

/// A transfer whose size the other end has not confirmed.
struct Unsettled {
  int64_t peer;
  bool isSend;
  int64_t number;
  int64_t bytes;
  /// Counts what this rank has given.
  int64_t position;
};

class NcclLinks : public DeviceLinks {
public:
  explicit NcclLinks(Transport &control)
      : control(control), self(control.rank()), calls(control),
        groups(control, calls), notices(control) {}
  ~NcclLinks() override { calls.end(deadlineSeconds); }

  const char *name() const override { return "nccl"; }
  bool occupiesGpu() const override { return true; }
  int64_t multiprocessorsHeld() const override {
    return linkCtas * static_cast<int64_t>(links.size());
  }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override;
  /// It reaches all memory as it is.
  void share(void *, int64_t) override {}
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override;
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override;
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override;
  void settle(CUevent_st *done) override;
  void settleAll() override;
  void settleGroups() override { groups.settleAll(); }
  void check() override;
  void abort() override { calls.abort(deadlineSeconds); }

private:
  void exchangeIds();
  void makeCommunicators();
  void awaitRounds(int64_t count);
  void warmUp();
  void exchangeElements(const NcclWarmUp &space);
  void post(const Link &link, int64_t peer, bool isSend, int64_t bytes,
            CUstream_st *stream, CUevent_st *done,
            const std::function<ncclResult_t()> &body);
  const Link &linkTo(int64_t peer, bool isSend) const;

  Transport &control;
  const int64_t self;
  NcclCalls calls;
  NcclGroups groups;
  /// Those that this rank is an end of, in the order of their rounds.
  std::vector<Link> links;

  SizeNotices notices;
  std::unordered_map<CUevent_st *, Unsettled> unsettled;
  int64_t numberGiven = 0;
};

} // namespace

// --- Connecting --------------------------------------------------------------

/// Each sender makes the id of its link and gives it to the receiver.
void NcclLinks::exchangeIds() {
  for (Link &link : links) {
    if (link.from == self)
      calls.call(*link.communicator,
                 [&] { return nccl().ncclGetUniqueId(&link.id); });
    if (link.from == self)
      control.postSend(link.to, &link.id, sizeof link.id);
    else
      control.postReceive(link.from, &link.id, sizeof link.id);
  }
  for (const Link &link : links)
    if (link.from == self)
      control.waitSend(link.to);
    else
      control.waitReceive(link.from);
}

/// One after the other, by rounds: both ends of a link make all of their links
/// of earlier rounds first, which takes as long as these rounds, however many
/// ranks there are. Each round has the deadline of a wait.
void NcclLinks::makeCommunicators() {
  for (Link &link : links) {
    const int role = link.from == self ? 0 : 1;
    calls.make(*link.communicator, "the other end of its communicator",
               static_cast<double>(link.round + 1) * deadlineSeconds,
               [id = link.id, role](ncclComm_t *handle) {
                 ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                 config.blocking = 1;
                 config.maxCTAs = linkCtas;
                 return nccl().ncclCommInitRankConfig(handle, 2, id, role,
                                                      &config);
               });
  }
}

/// Until all ranks have made their communicators. Who has fewer of them than
/// others waits for all of the others' rounds.
void NcclLinks::awaitRounds(int64_t count) {
  const double deadline = control.deadline();
  control.setDeadline(
      std::max(deadline, static_cast<double>(count) * deadlineSeconds));
  control.barrier();
  control.setDeadline(deadline);
}

/// The first use of a link is a handshake between hosts; a step in which all
/// send first would hang there. In a group, all of them go on together. Nobody
/// allocates or frees memory while another rank exchanges: where GPUs reach
/// each other's memory, the driver may wait for all of them.
void NcclLinks::warmUp() {
  std::optional<NcclWarmUp> space;
  if (!links.empty())
    space.emplace(links.size());
  control.barrier();
  if (space)
    exchangeElements(*space);
  control.barrier();
}

void NcclLinks::exchangeElements(const NcclWarmUp &space) {
  auto valueOf = [](const Link &link) { return link.from << 32 | link.to; };
  for (size_t i = 0; i < links.size(); ++i) {
    const int64_t value = links[i].from == self ? valueOf(links[i]) : -1;
    copyToDevice(space.at(i), &value, sizeof value);
  }
  std::vector<std::function<ncclResult_t()>> transfers;
  for (size_t i = 0; i < links.size(); ++i) {
    const bool isSend = links[i].from == self;
    void *data = reinterpret_cast<void *>(space.at(i));
    transfers.emplace_back(
        [isSend, data, comm = links[i].comm(), stream = space.stream(i)] {
          return isSend ? nccl().ncclSend(data, 1, ncclInt64, 1, comm, stream)
                        : nccl().ncclRecv(data, 1, ncclInt64, 0, comm, stream);
        });
  }
  calls.callAside(*links[0].communicator, "the first exchange", deadlineSeconds,
                  [transfers] {
                    ncclResult_t result = nccl().ncclGroupStart();
                    for (const auto &transfer : transfers)
                      if (isFine(result))
                        result = transfer();
                    const ncclResult_t end = nccl().ncclGroupEnd();
                    return isFine(result) ? end : result;
                  });
  for (const Link &link : links)
    calls.waitUntilReady(*link.communicator, "the first exchange",
                         deadlineSeconds);
  for (size_t i = 0; i < links.size(); ++i) {
    calls.waitUntilExchanged(*links[i].communicator, space.stream(i),
                             deadlineSeconds);
    int64_t value = 0;
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(&value, space.at(i), sizeof value));
    if (value != valueOf(links[i]))
      fail(processName(self), ", ", links[i].communicator->text,
           " brings what was meant for another link: NCCL, or the network, is "
           "broken");
  }
}

void NcclLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  checkSameLinks(control, all);
  std::vector<std::vector<int64_t>> ends;
  for (const auto &[from, to] : all) {
    if (from == to)
      fail(processName(from),
           " has a link to itself, which NCCL does not have");
    ends.push_back({from, to});
  }
  const std::vector<int64_t> rounds = assignRounds(ends);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto &[from, to] = all[i];
    if (from == self || to == self)
      links.push_back({from,
                       to,
                       rounds[i],
                       &calls.add("link " + processNumber(from) + " -> " +
                                      processNumber(to),
                                  from == self ? to : from),
                       {}});
  }
  std::sort(links.begin(), links.end(),
            [](const Link &a, const Link &b) { return a.round < b.round; });
  exchangeIds();
  makeCommunicators();
  int64_t count = 0;
  for (const int64_t round : rounds)
    count = std::max(count, round + 1);
  awaitRounds(count);
  warmUp();
}

void NcclLinks::connectGroups(const std::vector<std::vector<int64_t>> &all) {
  groups.connect(all, deadlineSeconds);
}

// --- Transfers ---------------------------------------------------------------

const Link &NcclLinks::linkTo(int64_t peer, bool isSend) const {
  for (const Link &link : links)
    if (isSend ? link.from == self && link.to == peer
               : link.to == self && link.from == peer)
      return link;
  fail(processName(self), " has no link ", isSend ? "to " : "from ",
       processName(peer));
}

void NcclLinks::post(const Link &link, int64_t peer, bool isSend, int64_t bytes,
                     CUstream_st *stream, CUevent_st *done,
                     const std::function<ncclResult_t()> &body) {
  if (comparing)
    unsettled[done] = {peer, isSend, notices.tell(peer, isSend, bytes), bytes,
                       numberGiven++};
  if (bytes) {
    calls.call(*link.communicator, body);
    // It is launched, unless NCCL_COMM_BLOCKING=0 is set: before that, an event
    // would be recorded in front of it, and another link's could overtake it.
    calls.waitUntilReady(
        *link.communicator,
        (isSend ? "launch of a send of " : "launch of a receive of ") +
            std::to_string(bytes) + " bytes",
        deadlineSeconds);
  }
  PIPEWRIGHT_CUDA(cuEventRecord(done, stream));
}

void NcclLinks::send(int64_t peer, const void *data, int64_t bytes,
                     CUstream_st *stream, CUevent_st *done) {
  const Link &link = linkTo(peer, true);
  post(link, peer, true, bytes, stream, done, [&] {
    return nccl().ncclSend(data, bytes, ncclInt8, 1, link.comm(), stream);
  });
}

void NcclLinks::receive(int64_t peer, void *data, int64_t bytes,
                        CUstream_st *stream, CUevent_st *done) {
  const Link &link = linkTo(peer, false);
  post(link, peer, false, bytes, stream, done, [&] {
    return nccl().ncclRecv(data, bytes, ncclInt8, 0, link.comm(), stream);
  });
}

void NcclLinks::collect(int64_t group, const Collective &what, void *data,
                        CUstream_st *stream, CUevent_st *done) {
  groups.collect(group, what, data, stream, done, comparing, deadlineSeconds);
}

void NcclLinks::settle(CUevent_st *done) {
  groups.settle(done);
  const auto found = unsettled.find(done);
  if (found == unsettled.end())
    return;
  const Unsettled transfer = found->second;
  unsettled.erase(found);
  try {
    notices.compare(transfer.peer, transfer.isSend, transfer.number,
                    transfer.bytes);
  } catch (const DeadlinePassed &) {
    failDeadline(self, transfer.peer,
                 (transfer.isSend ? "send of " : "receive of ") +
                     std::to_string(transfer.bytes) + " bytes",
                 control.deadline());
  }
}

void NcclLinks::settleAll() {
  // In the order of the program: what a person reads is where it stands.
  std::vector<std::pair<int64_t, CUevent_st *>> left;
  for (const auto &[done, transfer] : unsettled)
    left.emplace_back(transfer.position, done);
  std::sort(left.begin(), left.end());
  for (const auto &[position, done] : left)
    settle(done);
  if (comparing)
    notices.finish();
  groups.settleAll();
}

void NcclLinks::check() {
  calls.check();
  control.poll();
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createNcclLinks(Transport &control) {
  auto links = std::make_unique<NcclLinks>(control);
  links->setDeadline(control.deadline());
  return links;
}
