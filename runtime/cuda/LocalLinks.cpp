//===- LocalLinks.cpp - Transfers between threads with GPUs ---------------===//

#include "runtime/cuda/LocalLinks.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
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

  void connect(const std::vector<std::pair<int64_t, int64_t>> &all,
               double deadline);
  void post(int64_t peer, End end, LocalMeeting::Part part);

protected:
  std::string findDifference(const RendezvousPoint &link,
                             const LocalMeeting &meeting) const override;
  void enqueue(const RendezvousPoint &link, const LocalMeeting &meeting,
               int64_t member) override;
  std::string textOf(const LocalMeeting &meeting,
                     int64_t member) const override;

private:
  void warmUp(const std::vector<std::pair<int64_t, int64_t>> &own,
              double deadline);
};

class LocalLinks : public DeviceLinks {
public:
  LocalLinks(LocalPlaces &world, Transport &control)
      : world(world), control(control), transfers(world, control),
        groups(world, control) {}
  ~LocalLinks() override;

  const char *name() const override { return "cuda-local"; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override {
    transfers.connect(all, deadlineSeconds);
  }
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override {
    groups.connect(all);
  }
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

void Transfers::connect(const std::vector<std::pair<int64_t, int64_t>> &all,
                        double deadline) {
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
  warmUp(own, deadline);
}

/// A first exchange finds out now what would fail in the first step.
void Transfers::warmUp(const std::vector<std::pair<int64_t, int64_t>> &own,
                       double deadline) {
  if (own.empty())
    return;
  const int64_t self = control.rank();
  constexpr int64_t bytes = sizeof(int64_t);
  const int64_t places = 2 * static_cast<int64_t>(own.size());
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  PIPEWRIGHT_CUDA(cuMemAlloc(&memory, places * bytes));
  PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<int64_t> values(places, -1);
  for (size_t i = 0; i < own.size(); ++i)
    values[2 * i] = own[i].first << 32 | own[i].second;
  copyToDevice(memory, values.data(), places * bytes);
  std::vector<CUevent> done;
  auto event = [&] { return done.emplace_back(events.take()); };
  for (size_t i = 0; i < own.size(); ++i) {
    const auto [from, to] = own[i];
    const CUdeviceptr sent = memory + 2 * i * bytes, received = sent + bytes;
    if (from == self)
      post(to, Sending, {sent, stream, event(), bytes});
    if (to == self)
      post(from, Receiving, {received, stream, event(), bytes});
  }
  settleAll(deadline);
  for (CUevent each : done) {
    PIPEWRIGHT_CUDA(cuEventSynchronize(each));
    events.giveBack(each);
  }
  PIPEWRIGHT_CUDA(cuMemcpyDtoH(values.data(), memory, places * bytes));
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i].second == self && values[2 * i + 1] != values[2 * i])
      fail(processName(self), ": a copy from the GPU of ",
           processName(own[i].first),
           " brings wrong bytes; is peer access between GPUs broken?");
  PIPEWRIGHT_CUDA(cuStreamDestroy(stream));
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
