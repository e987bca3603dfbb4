//===- NcclLinks.cpp - Transfers between GPUs by NCCL ---------------------===//

#include "runtime/cuda/NcclLinks.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/SizeNotices.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

using namespace pipewright::runtime;

namespace {

using Clock = std::chrono::steady_clock;

/// How many multiprocessors a transfer may hold while it waits for its peer.
/// All links of a rank may wait at once, and leave most of the GPU to tasks;
/// what a stage hands on takes two orders of magnitude less time than the stage
/// itself, so that more would not be seen.
constexpr int maxCtas = 4;

/// One end of a directed link.
struct Link {
  int64_t from = 0, to = 0;
  ncclComm_t comm = nullptr;
  ncclUniqueId id = {};

  std::string text() const {
    return "link " + std::to_string(from) + " -> " + std::to_string(to);
  }
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

struct WarmUp;

class NcclLinks : public DeviceLinks {
public:
  explicit NcclLinks(Transport &control)
      : control(control), self(control.rank()), notices(control) {
    nccl();
  }
  ~NcclLinks() override;

  const char *name() const override { return "nccl"; }
  bool occupiesGpu() const override { return true; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override;
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override;
  void settle(CUevent_st *done) override;
  void settleAll() override;
  void check() override;
  void abort() override;

private:
  /// An NCCL call on a link's communicator: nobody aborts it meanwhile.
  template <class Call>
  void call(const Link &link, const Call &body);
  ncclResult_t stateOf(Link &link);
  void waitUntilReady(Link &link, const std::string &what);
  [[noreturn]] void failLink(const Link &link, ncclResult_t result);

  void exchangeIds();
  void makeCommunicators();
  void warmUp();
  void exchangeElements(const WarmUp &space);
  void post(Link &link, int64_t peer, bool isSend, int64_t bytes,
            CUstream_st *stream, CUevent_st *done,
            const std::function<ncclResult_t()> &body);
  Link &linkTo(int64_t peer, bool isSend);
  void finalize();

  Transport &control;
  const int64_t self;
  /// In the one order that all ranks have: those that this rank is an end of.
  std::vector<Link> links;

  /// Guards the communicators against abort, which comes from any thread.
  std::timed_mutex mutex;
  bool aborted = false;

  SizeNotices notices;
  std::unordered_map<CUevent_st *, Unsettled> unsettled;
  int64_t numberGiven = 0;
};

/// Sleeps in a loop that waits for something that is likely soon.
class Patience {
public:
  Patience(double seconds) : seconds(seconds) {}

  bool isOver() const { return waited() > seconds; }
  void pause() const {
    // A launch takes tens of microseconds; a connection takes milliseconds.
    if (waited() > 1e-3)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();
  }

private:
  double waited() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  const double seconds;
  const Clock::time_point start = Clock::now();
};

} // namespace

// --- Calls -------------------------------------------------------------------

/// Why another rank has failed is told by the control plane, which may come a
/// little later than the end of its links.
constexpr double reasonSeconds = 1;

void NcclLinks::failLink(const Link &link, ncclResult_t result) {
  const char *last = nccl().ncclGetLastError(nullptr);
  const std::string detail = last && *last ? std::string(": ") + last : "";
  if (result == ncclRemoteError)
    for (const Patience patience(reasonSeconds); !patience.isOver();
         patience.pause())
      control.poll();
  fail("rank ", self, ", ", link.text(), ": NCCL reports ",
       ncclErrorText(result), detail);
}

template <class Call>
void NcclLinks::call(const Link &link, const Call &body) {
  ncclResult_t result = ncclSuccess;
  {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (aborted)
      throw Aborted("stopped because another rank failed");
    result = body();
  }
  // In progress: goes on in a thread of NCCL.
  if (result != ncclSuccess && result != ncclInProgress)
    failLink(link, result);
}

ncclResult_t NcclLinks::stateOf(Link &link) {
  ncclResult_t state = ncclSuccess;
  call(link, [&] { return nccl().ncclCommGetAsyncError(link.comm, &state); });
  if (state != ncclSuccess && state != ncclInProgress)
    failLink(link, state);
  return state;
}

void NcclLinks::waitUntilReady(Link &link, const std::string &what) {
  const Patience patience(deadlineSeconds);
  while (stateOf(link) == ncclInProgress) {
    if (patience.isOver())
      failDeadline(self, link.from == self ? link.to : link.from,
                   what + " on " + link.text(), deadlineSeconds);
    control.poll();
    patience.pause();
  }
}

// --- Connecting --------------------------------------------------------------

/// Each sender makes the id of its link and gives it to the receiver.
void NcclLinks::exchangeIds() {
  for (Link &link : links) {
    if (link.from == self)
      call(link, [&] { return nccl().ncclGetUniqueId(&link.id); });
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

/// One after the other, in the order that all ranks have: of the links that are
/// not made yet, the first one has both of its ends waiting for it.
void NcclLinks::makeCommunicators() {
  for (Link &link : links) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = maxCtas;
    const int role = link.from == self ? 0 : 1;
    call(link, [&] {
      return nccl().ncclCommInitRankConfig(&link.comm, 2, link.id, role,
                                           &config);
    });
    waitUntilReady(link, "the other end of its communicator");
  }
}

namespace {
/// What the exchange of one element needs for each link; given back at once.
struct WarmUp {
  explicit WarmUp(size_t links) : streams(links) {
    PIPEWRIGHT_CUDA(cuMemAlloc(&memory, links * spacing));
    // One stream for each: on one stream a receive that waits would hold up
    // the send that its peer waits for.
    for (CUstream &stream : streams)
      PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~WarmUp() {
    // What NCCL still holds back would make these wait for ever.
    if (std::uncaught_exceptions())
      return;
    for (CUstream stream : streams)
      cudaDriver().cuStreamDestroy(stream);
    cudaDriver().cuMemFree(memory);
  }
  CUdeviceptr at(size_t link) const { return memory + link * spacing; }

  /// What is written at the same time does not share a cache line.
  static constexpr size_t spacing = 128;

  CUdeviceptr memory = 0;
  std::vector<CUstream> streams;
};
} // namespace

/// The first use of a link is a handshake between hosts; a step in which all
/// send first would hang there. In a group, all of them go on together. Nobody
/// allocates or frees memory while another rank exchanges: where GPUs reach
/// each other's memory, the driver may wait for all of them.
void NcclLinks::warmUp() {
  std::optional<WarmUp> space;
  if (!links.empty())
    space.emplace(links.size());
  control.barrier();
  if (space)
    exchangeElements(*space);
  control.barrier();
}

void NcclLinks::exchangeElements(const WarmUp &space) {
  auto valueOf = [](const Link &link) { return link.from << 32 | link.to; };
  for (size_t i = 0; i < links.size(); ++i) {
    const int64_t value = links[i].from == self ? valueOf(links[i]) : -1;
    copyToDevice(space.at(i), &value, sizeof value);
  }
  call(links[0], [] { return nccl().ncclGroupStart(); });
  for (size_t i = 0; i < links.size(); ++i) {
    Link &link = links[i];
    void *data = reinterpret_cast<void *>(space.at(i));
    CUstream stream = space.streams[i];
    call(link, [&] {
      return link.from == self
                 ? nccl().ncclSend(data, 1, ncclInt64, 1, link.comm, stream)
                 : nccl().ncclRecv(data, 1, ncclInt64, 0, link.comm, stream);
    });
  }
  call(links[0], [] { return nccl().ncclGroupEnd(); });
  for (Link &link : links)
    waitUntilReady(link, "the first exchange");
  for (size_t i = 0; i < links.size(); ++i) {
    const Patience patience(deadlineSeconds);
    while (cudaDriver().cuStreamQuery(space.streams[i]) ==
           CUDA_ERROR_NOT_READY) {
      waitUntilReady(links[i], "the first exchange");
      if (patience.isOver())
        failDeadline(self, links[i].from == self ? links[i].to : links[i].from,
                     "the first exchange on " + links[i].text(),
                     deadlineSeconds);
      patience.pause();
    }
    int64_t value = 0;
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(&value, space.at(i), sizeof value));
    if (value != valueOf(links[i]))
      fail("rank ", self, ", ", links[i].text(),
           " brings what was meant for another link: NCCL, or the network, is "
           "broken");
  }
}

void NcclLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  checkSameLinks(control, all);
  for (const auto &[from, to] : all) {
    if (from == to)
      fail("rank ", from, " has a link to itself, which NCCL does not have");
    if (from == self || to == self)
      links.push_back({from, to, nullptr, {}});
  }
  exchangeIds();
  makeCommunicators();
  warmUp();
}

// --- Transfers ---------------------------------------------------------------

Link &NcclLinks::linkTo(int64_t peer, bool isSend) {
  for (Link &link : links)
    if (isSend ? link.from == self && link.to == peer
               : link.to == self && link.from == peer)
      return link;
  fail("rank ", self, " has no link ", isSend ? "to" : "from", " rank ", peer);
}

void NcclLinks::post(Link &link, int64_t peer, bool isSend, int64_t bytes,
                     CUstream_st *stream, CUevent_st *done,
                     const std::function<ncclResult_t()> &body) {
  if (comparing)
    unsettled[done] = {peer, isSend, notices.tell(peer, isSend, bytes), bytes,
                       numberGiven++};
  if (bytes) {
    call(link, body);
    // A thread of NCCL launches it. Before that, an event would be recorded in
    // front of it, and another link's could overtake it.
    waitUntilReady(
        link, (isSend ? "launch of a send of " : "launch of a receive of ") +
                  std::to_string(bytes) + " bytes");
  }
  PIPEWRIGHT_CUDA(cuEventRecord(done, stream));
}

void NcclLinks::send(int64_t peer, const void *data, int64_t bytes,
                     CUstream_st *stream, CUevent_st *done) {
  Link &link = linkTo(peer, true);
  post(link, peer, true, bytes, stream, done, [&] {
    return nccl().ncclSend(data, bytes, ncclInt8, 1, link.comm, stream);
  });
}

void NcclLinks::receive(int64_t peer, void *data, int64_t bytes,
                        CUstream_st *stream, CUevent_st *done) {
  Link &link = linkTo(peer, false);
  post(link, peer, false, bytes, stream, done, [&] {
    return nccl().ncclRecv(data, bytes, ncclInt8, 0, link.comm, stream);
  });
}

void NcclLinks::settle(CUevent_st *done) {
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
}

void NcclLinks::check() {
  for (Link &link : links)
    stateOf(link);
  control.poll();
}

// --- Ending ------------------------------------------------------------------

/// Aborting a communicator frees its memory, for which the driver waits until
/// the whole GPU is idle: until the kernels of the other communicators have
/// ended, which those do when they are aborted as well. So all are aborted at
/// once, each by a thread of its own. Where one does not come to an end, the
/// error that led here must still be heard.
static std::future<void> abortAll(const std::vector<ncclComm_t> &comms) {
  struct Count {
    explicit Count(size_t left) : left(left) {}
    std::atomic<size_t> left;
    std::promise<void> ended;
  };
  const auto count = std::make_shared<Count>(comms.size());
  if (comms.empty())
    count->ended.set_value();
  for (ncclComm_t comm : comms)
    std::thread([comm, count] {
      nccl().ncclCommAbort(comm);
      if (--count->left == 0)
        count->ended.set_value();
    }).detach();
  return count->ended.get_future();
}

/// The longest that an abort may hold up the end of the program.
static std::chrono::duration<double> abortPatience(double deadline) {
  return std::chrono::duration<double>(std::clamp(deadline, 0.5, 10.0));
}

void NcclLinks::abort() {
  const auto patience = abortPatience(deadlineSeconds);
  {
    // Held by a call of NCCL that does not return: nothing can be done.
    std::unique_lock<std::timed_mutex> lock(mutex, patience);
    if (!lock || aborted)
      return;
    aborted = true;
  }
  // Nobody calls NCCL from here on.
  std::vector<ncclComm_t> comms;
  for (const Link &link : links)
    if (link.comm)
      comms.push_back(link.comm);
  abortAll(comms).wait_for(patience);
}

/// Both ends of each link: first all say that they are done, then all wait.
void NcclLinks::finalize() {
  for (Link &link : links)
    call(link, [&] { return nccl().ncclCommFinalize(link.comm); });
  for (Link &link : links)
    waitUntilReady(link, "the end");
  std::lock_guard<std::timed_mutex> lock(mutex);
  for (Link &link : links)
    nccl().ncclCommDestroy(link.comm);
  aborted = true;
}

NcclLinks::~NcclLinks() {
  bool isWell = !aborted && !std::uncaught_exceptions();
  for (const Link &link : links)
    isWell &= link.comm != nullptr;
  try {
    if (isWell)
      finalize();
  } catch (const std::exception &) {
    // All work is done; whoever broke the link says so itself.
  }
  abort();
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createNcclLinks(Transport &control) {
  auto links = std::make_unique<NcclLinks>(control);
  links->setDeadline(control.deadline());
  return links;
}
