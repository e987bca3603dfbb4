//===- LocalLinks.cpp - Transfers between threads with GPUs ---------------===//

#include "runtime/cuda/LocalLinks.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/FirstExchange.h"
#include "runtime/cuda/LocalGroups.h"
#include "runtime/cuda/LocalMeetings.h"
#include "runtime/net/Agreement.h"

#include <exception>

using namespace pipewright::runtime;

LocalWorld::LocalWorld(int64_t ranks)
    : shared(std::make_unique<LocalPlaces>(ranks)) {}
LocalWorld::~LocalWorld() = default;

namespace {

/// Members of a link.
enum End { Sending = 0, Receiving = 1 };

class Transfers : public LocalMeetings {
public:
  using LocalMeetings::LocalMeetings;

  /// The links of this rank.
  std::vector<std::pair<int64_t, int64_t>>
  connect(const std::vector<std::pair<int64_t, int64_t>> &all);
  void post(int64_t peer, End end, LocalMeeting::Part part);

protected:
  std::string findDifference(const RendezvousPoint &link,
                             const LocalMeeting &meeting) const override;
  void enqueue(const RendezvousPoint &link, const LocalMeeting &meeting,
               int64_t member) override;
  std::string textOf(const LocalMeeting &meeting,
                     int64_t member) const override;
};

class LocalLinks : public DeviceLinks {
public:
  LocalLinks(LocalPlaces &world, Transport &control)
      : world(world), control(control), transfers(world, control),
        groups(world, control) {}
  ~LocalLinks() override;

  const char *name() const override { return "cuda-local"; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override {
    groups.connect(all);
  }
  /// Threads reach all memory of their process.
  void share(void *, int64_t) override {}
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override {
    transfers.post(peer, Sending,
                   {reinterpret_cast<CUdeviceptr>(data), stream, done, bytes});
  }
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override {
    transfers.post(peer, Receiving,
                   {reinterpret_cast<CUdeviceptr>(data), stream, done, bytes});
  }
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override {
    groups.collect(group, what, data, stream, done, deadlineSeconds);
  }
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) override {
    const auto flag = transfers.recorded(done);
    return flag ? flag : groups.recorded(done);
  }
  void settle(CUevent_st *done) override {
    groups.settle(done, deadlineSeconds);
    transfers.settle(done, deadlineSeconds);
  }
  void settleAll() override {
    transfers.settleAll(deadlineSeconds);
    groups.settleAll(deadlineSeconds);
  }
  void settleGroups() override { groups.settleAll(deadlineSeconds); }
  void check() override;
  void abort() override { world.abort(); }

private:
  LocalPlaces &world;
  Transport &control;
  Transfers transfers;
  LocalGroups groups;
};

} // namespace

// --- Connecting --------------------------------------------------------------

std::vector<std::pair<int64_t, int64_t>>
Transfers::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  checkSameLinks(control, all);
  const int64_t self = control.rank();
  std::vector<std::pair<int64_t, int64_t>> own;
  for (const auto &[from, to] : all) {
    if (from == self)
      open(world.link(from, to), Sending);
    if (to == self)
      open(world.link(from, to), Receiving);
    if (from == self || to == self)
      own.emplace_back(from, to);
  }
  // Now everyone knows the other ends.
  control.barrier();
  for (const auto &[from, to] : own)
    for (const RendezvousPoint::End &end : world.link(from, to).ends)
      enablePeerAccess(context, end.context);
  control.barrier();
  return own;
}

void LocalLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  const auto own = transfers.connect(all);
  if (own.empty())
    return;
  CUdeviceptr memory = 0;
  PIPEWRIGHT_CUDA(cuMemAlloc(&memory, firstExchangeBytes(own.size())));
  exchangeFirst(*this, control.rank(), own, memory, deadlineSeconds);
  PIPEWRIGHT_CUDA(cuMemFree(memory));
}

// --- Transfers ---------------------------------------------------------------

std::string Transfers::findDifference(const RendezvousPoint &link,
                                      const LocalMeeting &meeting) const {
  const int64_t sent = meeting.parts[Sending].bytes;
  const int64_t expected = meeting.parts[Receiving].bytes;
  if (sent == expected)
    return "";
  return sizesText(link.members[Sending], link.members[Receiving], sent,
                   expected);
}

void Transfers::enqueue(const RendezvousPoint &link,
                        const LocalMeeting &meeting, int64_t member) {
  const LocalMeeting::Part &from = meeting.parts[Sending];
  copy(meeting.parts[Receiving].data, link.ends[Receiving].context, from.data,
       link.ends[Sending].context, from.bytes, meeting.parts[member].stream);
}

std::string Transfers::textOf(const LocalMeeting &meeting,
                              int64_t member) const {
  return (member == Sending ? "send of " : "receive of ") +
         std::to_string(meeting.parts[member].bytes) + " bytes";
}

void Transfers::post(int64_t peer, End end, LocalMeeting::Part part) {
  const int64_t self = control.rank();
  RendezvousPoint &link =
      end == Sending ? world.link(self, peer) : world.link(peer, self);
  if (link.ends[end].context == nullptr)
    fail(processName(self), " has no link ", end == Sending ? "to " : "from ",
         processName(peer));
  const std::string error = arrive(link, end, std::move(part));
  if (!error.empty())
    fail(error);
}

// --- Ending ------------------------------------------------------------------

void LocalLinks::check() {
  if (world.aborted)
    failAborted();
  control.poll();
}

LocalLinks::~LocalLinks() {
  // The other end of what was not settled must not touch what goes now.
  if (!transfers.isSettled() || !groups.isSettled() ||
      std::uncaught_exceptions())
    abort();
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createLocalLinks(LocalWorld &world, Transport &control) {
  auto links = std::make_unique<LocalLinks>(world.places(), control);
  links->setDeadline(control.deadline());
  return links;
}
