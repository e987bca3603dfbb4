//===- LocalLinks.cpp - Transfers between threads with GPUs ---------------===//

#include "runtime/cuda/LocalLinks.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/LocalGroups.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_map>

using namespace pipewright::runtime;

namespace {

enum End { Sending = 0, Receiving = 1 };

/// One end's half of a transfer.
struct Half {
  End end = Sending;
  CUdeviceptr data = 0;
  int64_t bytes = 0;
  /// Recorded when the first end came; null at the second.
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUstream stream = nullptr;

  /// True when both ends have come: the copy is enqueued, or never will be.
  std::shared_ptr<std::atomic<bool>> met =
      std::make_shared<std::atomic<bool>>(false);
  /// What the other end gave, if that is another size.
  int64_t otherBytes = -1;
};

/// What one end of a link has given to it once and for all.
struct EndState {
  CUcontext context = nullptr;
  /// Recorded behind the last copy that this end enqueued.
  CUevent copied = nullptr;
  /// Where `done` of this end is recorded by an end on another GPU, which
  /// cannot record it on a stream of its own. Nothing else is on it, so that
  /// no later work of the link can stand in front.
  CUstream completion = nullptr;
};

/// One directed link. `waiting` has halves of one end only.
struct Link {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Half>> waiting;
  EndState ends[2];
  /// Who enqueued the last copy; -1: nobody has.
  int lastEnd = -1;
};

} // namespace

struct LocalWorld::State {
  explicit State(int64_t ranks) : ranks(ranks), links(ranks * ranks) {}

  Link &link(int64_t from, int64_t to) { return links[from * ranks + to]; }

  const int64_t ranks;
  std::vector<Link> links;
  std::atomic<bool> aborted{false};
  LocalGroupList groups;
};

LocalWorld::LocalWorld(int64_t ranks)
    : shared(std::make_unique<State>(ranks)) {}
LocalWorld::~LocalWorld() = default;

namespace {

class LocalLinks : public DeviceLinks {
public:
  LocalLinks(LocalWorld::State &world, Transport &control)
      : world(world), control(control), self(control.rank()),
        groups(world.groups, control) {
    PIPEWRIGHT_CUDA(cuCtxGetCurrent(&context));
  }
  ~LocalLinks() override;

  const char *name() const override { return "cuda-local"; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override {
    groups.connect(all);
  }
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override;
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override;
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override {
    groups.collect(group, what, data, stream, done);
  }
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) override {
    const auto found = given.find(done);
    return found == given.end() ? groups.recorded(done)
                                : found->second.half->met;
  }
  void settle(CUevent_st *done) override;
  void settleAll() override;
  void check() override;
  void abort() override;

private:
  struct Given {
    std::shared_ptr<Half> half;
    int64_t peer;
    /// Counts what this rank has given.
    int64_t number;
  };

  Link &linkOf(int64_t peer, End end) {
    return end == Sending ? world.link(self, peer) : world.link(peer, self);
  }
  void openEnd(EndState &end);
  void warmUp(const std::vector<std::pair<int64_t, int64_t>> &own);

  void post(int64_t peer, std::shared_ptr<Half> half);
  void enqueue(Link &link, Half &first, Half &second);
  void meet(Link &link, int64_t peer, Half &first, Half &second);
  [[noreturn]] void failHalf(int64_t peer, const Half &half) const;
  [[noreturn]] void failAborted() const;
  CUevent takeEvent();

  LocalWorld::State &world;
  Transport &control;
  const int64_t self;
  CUcontext context = nullptr;
  LocalGroups groups;
  std::vector<EndState *> ends;
  std::unordered_map<CUevent, Given> given;
  int64_t numberGiven = 0;
  /// Streams that do not have the copies of their transfers in them, with the
  /// event behind each copy; until settleAll.
  std::vector<std::pair<CUstream, CUevent>> ahead;
  /// Events for `ready` that no transfer needs any more.
  std::vector<CUevent> spare;
};

} // namespace

// --- Connecting --------------------------------------------------------------

void LocalLinks::openEnd(EndState &end) {
  end.context = context;
  PIPEWRIGHT_CUDA(cuEventCreate(&end.copied, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuStreamCreate(&end.completion, CU_STREAM_NON_BLOCKING));
  ends.push_back(&end);
}

void LocalLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  checkSameLinks(control, all);
  std::vector<std::pair<int64_t, int64_t>> own;
  for (const auto &[from, to] : all) {
    if (from == self)
      openEnd(world.link(from, to).ends[Sending]);
    if (to == self)
      openEnd(world.link(from, to).ends[Receiving]);
    if (from == self || to == self)
      own.emplace_back(from, to);
  }
  // Now everyone knows the other ends.
  control.barrier();
  for (const auto &[from, to] : own) {
    const Link &link = world.link(from, to);
    if (from == self)
      enablePeerAccess(context, link.ends[Receiving].context);
    if (to == self)
      enablePeerAccess(context, link.ends[Sending].context);
  }
  control.barrier();
  warmUp(own);
}

/// A first exchange finds out now what would fail in the first step.
void LocalLinks::warmUp(const std::vector<std::pair<int64_t, int64_t>> &own) {
  if (own.empty())
    return;
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
  auto event = [&] { return done.emplace_back(takeEvent()); };
  for (size_t i = 0; i < own.size(); ++i) {
    const auto [from, to] = own[i];
    const CUdeviceptr sent = memory + 2 * i * bytes, received = sent + bytes;
    if (from == self)
      send(to, reinterpret_cast<void *>(sent), bytes, stream, event());
    if (to == self)
      receive(from, reinterpret_cast<void *>(received), bytes, stream, event());
  }
  settleAll();
  for (CUevent each : done)
    PIPEWRIGHT_CUDA(cuEventSynchronize(each));
  PIPEWRIGHT_CUDA(cuMemcpyDtoH(values.data(), memory, places * bytes));
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i].second == self && values[2 * i + 1] != values[2 * i])
      fail("rank ", self, ": a copy from the GPU of rank ", own[i].first,
           " brings wrong bytes; is peer access between GPUs broken?");
  spare.insert(spare.end(), done.begin(), done.end());
  PIPEWRIGHT_CUDA(cuStreamDestroy(stream));
  PIPEWRIGHT_CUDA(cuMemFree(memory));
}

// --- Transfers ---------------------------------------------------------------

CUevent LocalLinks::takeEvent() {
  CUevent event = nullptr;
  if (spare.empty()) {
    PIPEWRIGHT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
  }
  event = spare.back();
  spare.pop_back();
  return event;
}

void LocalLinks::failAborted() const {
  throw Aborted("stopped because another rank failed");
}

void LocalLinks::failHalf(int64_t peer, const Half &half) const {
  if (half.end == Sending)
    failSizes(self, peer, half.bytes, half.otherBytes);
  failSizes(peer, self, half.otherBytes, half.bytes);
}

/// The second end has come: enqueues the copy on its stream.
void LocalLinks::enqueue(Link &link, Half &first, Half &second) {
  const EndState &mine = link.ends[second.end], &other = link.ends[first.end];
  const CUstream stream = second.stream;
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, first.ready, 0));
  if (link.lastEnd == first.end)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, other.copied, 0));
  const Half &from = first.end == Sending ? first : second;
  const Half &to = first.end == Sending ? second : first;
  const bool oneGpu = mine.context == other.context;
  if (from.bytes && oneGpu)
    PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(to.data, from.data, from.bytes, stream));
  else if (from.bytes)
    PIPEWRIGHT_CUDA(cuMemcpyPeerAsync(to.data, link.ends[Receiving].context,
                                      from.data, link.ends[Sending].context,
                                      from.bytes, stream));
  PIPEWRIGHT_CUDA(cuEventRecord(mine.copied, stream));
  link.lastEnd = second.end;
  PIPEWRIGHT_CUDA(cuEventRecord(second.done, stream));
  if (oneGpu) {
    PIPEWRIGHT_CUDA(cuEventRecord(first.done, stream));
    return;
  }
  PIPEWRIGHT_CUDA(cuCtxSetCurrent(other.context));
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(other.completion, mine.copied, 0));
  PIPEWRIGHT_CUDA(cuEventRecord(first.done, other.completion));
  PIPEWRIGHT_CUDA(cuCtxSetCurrent(mine.context));
}

void LocalLinks::meet(Link &link, int64_t peer, Half &first, Half &second) {
  if (first.bytes != second.bytes) {
    first.otherBytes = second.bytes;
    second.otherBytes = first.bytes;
  } else {
    enqueue(link, first, second);
  }
  *first.met = *second.met = true;
  link.changed.notify_all();
  if (second.otherBytes >= 0)
    failHalf(peer, second);
}

void LocalLinks::post(int64_t peer, std::shared_ptr<Half> half) {
  Link &link = linkOf(peer, half->end);
  if (link.ends[half->end].context == nullptr)
    fail("rank ", self, " has no link ", half->end == Sending ? "to" : "from",
         " rank ", peer);
  given[half->done] = {half, peer, numberGiven++};
  std::lock_guard<std::mutex> lock(link.mutex);
  if (world.aborted)
    failAborted();
  if (!link.waiting.empty() && link.waiting.front()->end != half->end) {
    const std::shared_ptr<Half> first = link.waiting.front();
    link.waiting.pop_front();
    return meet(link, peer, *first, *half);
  }
  half->ready = takeEvent();
  PIPEWRIGHT_CUDA(cuEventRecord(half->ready, half->stream));
  link.waiting.push_back(std::move(half));
}

void LocalLinks::send(int64_t peer, const void *data, int64_t bytes,
                      CUstream_st *stream, CUevent_st *done) {
  auto half = std::make_shared<Half>();
  *half = {Sending, reinterpret_cast<CUdeviceptr>(data), bytes, nullptr, done,
           stream};
  post(peer, std::move(half));
}

void LocalLinks::receive(int64_t peer, void *data, int64_t bytes,
                         CUstream_st *stream, CUevent_st *done) {
  auto half = std::make_shared<Half>();
  *half = {Receiving, reinterpret_cast<CUdeviceptr>(data), bytes, nullptr, done,
           stream};
  post(peer, std::move(half));
}

void LocalLinks::settle(CUevent_st *done) {
  groups.settle(done, deadlineSeconds);
  const auto found = given.find(done);
  if (found == given.end())
    return;
  const auto [half, peer, number] = found->second;
  Link &link = linkOf(peer, half->end);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(deadlineSeconds);
  std::unique_lock<std::mutex> lock(link.mutex);
  while (!*half->met) {
    if (world.aborted)
      failAborted();
    if (std::chrono::steady_clock::now() >= until)
      failDeadline(self, peer,
                   (half->end == Sending ? "send of " : "receive of ") +
                       std::to_string(half->bytes) + " bytes",
                   deadlineSeconds);
    // In slices: that another rank has failed may come by the control plane.
    link.changed.wait_for(lock, std::chrono::milliseconds(50));
    lock.unlock();
    control.poll();
    lock.lock();
  }
  if (half->otherBytes >= 0)
    failHalf(peer, *half);
  if (half->ready) {
    ahead.emplace_back(half->stream, half->done);
    // Whoever enqueued the copy has told its stream to wait already.
    spare.push_back(half->ready);
  }
  given.erase(found);
}

void LocalLinks::settleAll() {
  // In the order of the program: what a person reads is where it stands.
  while (!given.empty())
    settle(std::min_element(given.begin(), given.end(),
                            [](const auto &a, const auto &b) {
                              return a.second.number < b.second.number;
                            })
               ->first);
  // From here on no stream can be idle before its transfers are over.
  for (const auto &[stream, done] : ahead)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, done, 0));
  ahead.clear();
  groups.settleAll(deadlineSeconds);
}

void LocalLinks::check() {
  if (world.aborted)
    failAborted();
  control.poll();
}

// --- Ending ------------------------------------------------------------------

void LocalLinks::abort() {
  world.aborted = true;
  for (Link &link : world.links) {
    // Behind this, nobody enqueues any more, and nobody has gone to sleep
    // without having seen it.
    std::lock_guard<std::mutex> lock(link.mutex);
    link.changed.notify_all();
  }
  world.groups.abort();
}

LocalLinks::~LocalLinks() {
  // The other end of what was not settled must not touch what goes now.
  if (!given.empty() || !groups.isSettled() || std::uncaught_exceptions())
    abort();
  const Driver &driver = cudaDriver();
  for (const auto &[done, transfer] : given)
    if (transfer.half->ready)
      driver.cuEventDestroy(transfer.half->ready);
  for (CUevent event : spare)
    driver.cuEventDestroy(event);
  for (const EndState *end : ends) {
    driver.cuEventDestroy(end->copied);
    driver.cuStreamDestroy(end->completion);
  }
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createLocalLinks(LocalWorld &world, Transport &control) {
  auto links = std::make_unique<LocalLinks>(world.state(), control);
  links->setDeadline(control.deadline());
  return links;
}
