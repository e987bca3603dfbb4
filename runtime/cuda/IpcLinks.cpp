//===- IpcLinks.cpp - Transfers between processes of a host ---------------===//

#include "runtime/cuda/IpcLinks.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/FirstExchange.h"
#include "runtime/cuda/IpcLink.h"
#include "runtime/cuda/Patience.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <unordered_map>

using namespace pipewright::runtime;

namespace {

/// Waits of the control plane have this deadline while it is there.
class WithDeadline {
public:
  WithDeadline(Transport &control, double seconds)
      : control(control), before(control.deadline()) {
    control.setDeadline(seconds);
  }
  ~WithDeadline() { control.setDeadline(before); }

private:
  Transport &control;
  const double before;
};

class IpcLinks : public DeviceLinks, private Errand {
public:
  explicit IpcLinks(Transport &control)
      : control(control), self(control.rank()) {
    control.addErrand(*this);
  }
  ~IpcLinks() override;

  const char *name() const override { return "cuda-ipc"; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override;
  void share(void *memory, int64_t bytes) override;
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override {
    give(peer, true, data, bytes, stream, done);
  }
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override {
    give(peer, false, data, bytes, stream, done);
  }
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override;
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) override;
  void settle(CUevent_st *done) override;
  void settleAll() override;
  void settleGroups() override {}
  void check() override;
  void abort() override;

private:
  /// A transfer that nobody has settled.
  struct Given {
    IpcLink *link;
    std::shared_ptr<IpcTransfer> transfer;
    /// Counts what this rank has given.
    int64_t position;
  };

  bool advance() override;
  void give(int64_t peer, bool isSend, const void *data, int64_t bytes,
            CUstream_st *stream, CUevent_st *done);
  void exchangeMemory(CUdeviceptr address, int64_t bytes);
  template <class T>
  std::vector<T> exchange(const std::vector<T> &offers);
  void warmUp(const std::vector<std::pair<int64_t, int64_t>> &own);
  void stopIfAborted();
  bool isAborted() const;
  void end();

  Transport &control;
  const int64_t self;
  /// Guards the list, for `abort`.
  std::mutex mutex;
  std::vector<std::unique_ptr<IpcLink>> links;
  bool areConnected = false;
  std::atomic<bool> aborted{false};
  std::unordered_map<CUevent_st *, Given> given;
  int64_t numberGiven = 0;
};

} // namespace

// --- Connecting --------------------------------------------------------------

/// What this rank offers to the other end of each link for what that offers.
/// All ranks have their links in one order.
template <class T>
std::vector<T> IpcLinks::exchange(const std::vector<T> &offers) {
  std::vector<T> others(links.size());
  for (size_t i = 0; i < links.size(); ++i) {
    control.postSend(links[i]->peer(), &offers[i], sizeof(T));
    control.postReceive(links[i]->peer(), &others[i], sizeof(T));
  }
  for (const std::unique_ptr<IpcLink> &link : links) {
    control.waitSend(link->peer());
    control.waitReceive(link->peer());
  }
  return others;
}

void IpcLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  const WithDeadline deadline(control, deadlineSeconds);
  checkSameLinks(control, all);
  std::vector<std::pair<int64_t, int64_t>> own;
  std::vector<IpcLink::Offer> offers;
  for (const auto &[from, to] : all) {
    if (from == to)
      fail(processName(from),
           " has a link to itself, which cuda-ipc does not have");
    if (from != self && to != self)
      continue;
    own.emplace_back(from, to);
    auto link = std::make_unique<IpcLink>(self, from, to);
    offers.push_back(link->makeOffer());
    links.push_back(std::move(link));
  }
  const std::vector<IpcLink::Offer> others = exchange(offers);
  for (size_t i = 0; i < links.size(); ++i)
    links[i]->accept(others[i]);
  control.barrier();
  {
    std::lock_guard<std::mutex> lock(mutex);
    areConnected = true;
  }
  for (const std::unique_ptr<IpcLink> &link : links)
    link->forgetName();
  warmUp(own);
}

/// Over memory that is there for that alone.
void IpcLinks::warmUp(const std::vector<std::pair<int64_t, int64_t>> &own) {
  CUdeviceptr memory = 0;
  if (!own.empty())
    PIPEWRIGHT_CUDA(cuMemAlloc(&memory, firstExchangeBytes(own.size())));
  exchangeMemory(memory, firstExchangeBytes(own.size()));
  if (!own.empty())
    exchangeFirst(*this, self, own, memory, deadlineSeconds);
  for (const std::unique_ptr<IpcLink> &link : links)
    link->closeMemory();
  control.barrier();
  if (memory)
    PIPEWRIGHT_CUDA(cuMemFree(memory));
}

void IpcLinks::connectGroups(const std::vector<std::vector<int64_t>> &all) {
  if (!all.empty())
    fail("cuda-ipc has no groups: processes have those of nccl");
}

void IpcLinks::collect(int64_t, const Collective &, void *, CUstream_st *,
                       CUevent_st *) {
  fail("cuda-ipc has no groups: processes have those of nccl");
}

void IpcLinks::exchangeMemory(CUdeviceptr address, int64_t bytes) {
  IpcLink::MemoryOffer offer = {{}, bytes};
  if (!links.empty())
    PIPEWRIGHT_CUDA(cuIpcGetMemHandle(&offer.handle, address));
  const std::vector<IpcLink::MemoryOffer> others =
      exchange(std::vector<IpcLink::MemoryOffer>(links.size(), offer));
  for (size_t i = 0; i < links.size(); ++i) {
    links[i]->shareMemory(address, bytes);
    links[i]->acceptMemory(others[i]);
  }
  // Nobody comes to a transfer before both have opened the other's memory.
  control.barrier();
}

void IpcLinks::share(void *memory, int64_t bytes) {
  const WithDeadline deadline(control, deadlineSeconds);
  exchangeMemory(reinterpret_cast<CUdeviceptr>(memory), bytes);
}

// --- Transfers ---------------------------------------------------------------

void IpcLinks::give(int64_t peer, bool isSend, const void *data, int64_t bytes,
                    CUstream_st *stream, CUevent_st *done) {
  stopIfAborted();
  for (const std::unique_ptr<IpcLink> &link : links) {
    if (link->peer() != peer || link->isSender() != isSend)
      continue;
    Given &entry = given[done];
    entry = {
        link.get(),
        link->give(reinterpret_cast<CUdeviceptr>(data), bytes, stream, done),
        numberGiven++};
    if (!entry.transfer->error.empty())
      fail(entry.transfer->error);
    return;
  }
  fail(processName(self), " has no link ", isSend ? "to " : "from ",
       processName(peer));
}

/// In waits and polls of the control plane.
bool IpcLinks::advance() {
  if (areConnected && !isAborted())
    for (const std::unique_ptr<IpcLink> &link : links)
      link->advance();
  return true;
}

std::shared_ptr<const std::atomic<bool>> IpcLinks::recorded(CUevent_st *done) {
  const auto found = given.find(done);
  if (found == given.end())
    return nullptr;
  const std::shared_ptr<IpcTransfer> &transfer = found->second.transfer;
  return {transfer, &transfer->met};
}

void IpcLinks::settle(CUevent_st *done) {
  const auto found = given.find(done);
  if (found == given.end())
    return;
  const auto [link, transfer, position] = found->second;
  for (const Patience patience(deadlineSeconds); !transfer->met;
       patience.pause()) {
    stopIfAborted();
    advance();
    if (patience.isOver())
      failDeadline(self, link->peer(),
                   (link->isSender() ? "send of " : "receive of ") +
                       std::to_string(transfer->part.bytes) + " bytes",
                   deadlineSeconds);
    control.poll();
  }
  given.erase(done);
  if (!transfer->error.empty())
    fail(transfer->error);
}

void IpcLinks::settleAll() {
  // In the order of the program: what a person reads is where it stands.
  std::vector<std::pair<int64_t, CUevent_st *>> left;
  for (const auto &[done, entry] : given)
    left.emplace_back(entry.position, done);
  std::sort(left.begin(), left.end());
  for (const auto &[position, done] : left)
    settle(done);
  // From here on no stream can be idle before its work is over.
  for (const std::unique_ptr<IpcLink> &link : links)
    link->catchUp();
}

// --- Ending ------------------------------------------------------------------

bool IpcLinks::isAborted() const {
  return aborted ||
         std::any_of(links.begin(), links.end(),
                     [](const auto &link) { return link->isAborted(); });
}

void IpcLinks::stopIfAborted() {
  if (!isAborted())
    return;
  for (const Patience patience(aborted ? 0 : reasonSeconds); !patience.isOver();
       patience.pause())
    control.poll();
  failAborted();
}

void IpcLinks::check() {
  stopIfAborted();
  control.poll();
}

void IpcLinks::abort() {
  aborted = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (areConnected)
    for (const std::unique_ptr<IpcLink> &link : links)
      link->abort();
}

/// Memory and events must not go while the other end has them open.
void IpcLinks::end() {
  for (const std::unique_ptr<IpcLink> &link : links)
    link->close();
  for (const std::unique_ptr<IpcLink> &link : links) {
    for (const Patience patience(deadlineSeconds); !link->isClosedByPeer();
         patience.pause()) {
      if (isAborted() || patience.isOver())
        return;
      control.poll();
    }
    link->release();
  }
}

IpcLinks::~IpcLinks() {
  control.removeErrand(*this);
  if (!given.empty() || !areConnected || std::uncaught_exceptions())
    abort();
  if (isAborted())
    return;
  try {
    end();
  } catch (const std::exception &) {
    // All work is done; whoever broke the link says so itself.
  }
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createIpcLinks(Transport &control) {
  auto links = std::make_unique<IpcLinks>(control);
  links->setDeadline(control.deadline());
  return links;
}
