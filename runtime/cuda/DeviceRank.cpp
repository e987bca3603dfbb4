//===- DeviceRank.cpp - A worker that computes on a GPU -------------------===//
//
// Its life, streams, events and memory. DeviceStep.cpp has what a step does.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/ProcessGroups.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/io/Source.h"
#include "runtime/rank/RankGroups.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

static const char *const linkFault =
    ": the program was compiled without this link";

DeviceRank::Parts::Parts(const Program &program, int64_t process,
                         int64_t number, std::shared_ptr<Device> gpu,
                         std::unique_ptr<DeviceLinks> connected,
                         const DeviceSettings &settings)
    : settings(settings), device(std::move(gpu)),
      memory(*device, program.ranks.at(number).arenaBytes, "arena"),
      stepState(*device, sizeof(StepState), "state of the step"),
      arena(reinterpret_cast<void *>(memory.address()), memory.bytes()),
      offloaded(program.ranks.at(number).hostBytes),
      onHost(offloaded.data(), offloaded.bytes()), mailbox(program),
      squares(*device, program, number), sending(program.ranks.size()),
      receiving(program.ranks.size()), graphs(settings.graphs),
      chaos(settings.chaos, process), links(std::move(connected)),
      watchdog(
          settings.timeout, process, [this] { return inspectPosition(); },
          [this] { links->abort(); }) {
  int lowest = 0, highest = 0;
  PIPEWRIGHT_CUDA(cuCtxGetStreamPriorityRange(&lowest, &highest));
  auto create = [&](int priority) {
    CUstream stream = nullptr;
    PIPEWRIGHT_CUDA(
        cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
    streams.push_back(stream);
    return stream;
  };
  computing = create(lowest);
  // A transfer keeps another rank waiting: it goes before kernels that have
  // not begun.
  for (int64_t peer : program.ranks[number].sendsTo)
    sending.at(peer) = create(highest);
  for (size_t peer = 0; peer < program.ranks.size(); ++peer)
    for (int64_t to : program.ranks[peer].sendsTo)
      if (to == number)
        receiving[peer] = create(highest);
  if (isInGroups(program, number))
    collecting = create(highest);
  // Only tasks of this rank wait for them.
  if (program.ranks[number].hostBytes > 0)
    for (CUstream *copying : {&offloading, &fetching})
      *copying = create(lowest);
  reserveStaging(Staging::bytesOfStep(program, number));
  const RankProgram &own = program.ranks[number];
  const int64_t known = std::max(own.events, own.evaluateEvents);
  if (known)
    slot(known - 1);
}

/// Now, while no transfer waits on a GPU: pinning memory may wait for it.
void DeviceRank::Parts::reserveStaging(int64_t bytes) {
  if (settings.steps)
    for (Staging &step : steps)
      step.reserve(bytes);
  if (settings.steps && settings.inputsAhead)
    ahead.reserve(*device, bytes);
  if (settings.evaluations)
    evaluations.reserve(bytes);
}

DeviceRank::Parts::~Parts() {
  // Communicators may still look at the streams that they were given.
  links.reset();
  const Driver &driver = cudaDriver();
  for (const EventSlot &event : events)
    driver.cuEventDestroy(event.handle);
  for (CUstream stream : streams)
    driver.cuStreamDestroy(stream);
}

DeviceRank::DeviceRank(const Program &program, Transport &transport,
                       std::shared_ptr<Device> device,
                       std::unique_ptr<DeviceLinks> links,
                       const DeviceSettings &settings)
    : Worker(program, transport) {
  if (!program.device)
    fail("the program was compiled for CPUs");
  device->makeCurrent();
  parts =
      std::make_unique<Parts>(program, transport.rank(), number(),
                              std::move(device), std::move(links), settings);
  parts->links->share(reinterpret_cast<void *>(parts->memory.address()),
                      parts->memory.bytes());
  // Loading a module may wait for the whole GPU: never in a step, where
  // streams wait for what this thread has yet to enqueue.
  prepareBuiltin(*this, "set_values");
}

DeviceRank::~DeviceRank() {
  if (std::uncaught_exceptions())
    abort();
  // Giving memory back waits for the GPU, which may never come to an end. The
  // process does, and the driver clears up behind it.
  if (parts->failed) {
    leakLibraries();
    static_cast<void>(parts.release());
    return;
  }
  // Handles of libraries hold things of the GPU's context: they go first, on a
  // thread that has it.
  try {
    parts->device->makeCurrent();
    leaveGroups();
    dropLibraries();
  } catch (const Error &) {
    leakLibraries();
  }
}

void DeviceRank::abort() {
  parts->failed = true;
  parts->links->abort();
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

CUstream DeviceRank::Parts::handle(Stream stream) const {
  if (stream.kind == Stream::Kind::Compute)
    return computing;
  if (stream.kind == Stream::Kind::Collective) {
    if (!collecting)
      fail("a collective of no group: the program was compiled without it");
    return collecting;
  }
  if (stream.kind == Stream::Kind::ToHost ||
      stream.kind == Stream::Kind::FromHost) {
    if (!offloading)
      fail("a copy to the host: the program was compiled without memory there");
    return stream.kind == Stream::Kind::ToHost ? offloading : fetching;
  }
  const bool isSend = stream.kind == Stream::Kind::Send;
  CUstream found = (isSend ? sending : receiving).at(stream.peer);
  if (!found)
    fail(isSend ? "send to" : "receive from", " rank ", stream.peer, linkFault);
  return found;
}

EventSlot &DeviceRank::Parts::slot(int64_t event) {
  while (static_cast<int64_t>(events.size()) <= event) {
    EventSlot &created = events.emplace_back();
    PIPEWRIGHT_CUDA(cuEventCreate(
        &created.handle, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
  }
  return events[event];
}

/// "; " and where the streams stand, or what the host gave them last.
std::string DeviceRank::Parts::position() {
  log.advance();
  const std::string stands = log.position();
  if (!stands.empty())
    return "; " + stands;
  return lastTask.empty() ? "" : "; the last task was " + lastTask;
}

std::string DeviceRank::Parts::inspectPosition() {
  device->makeCurrent();
  const std::string stands = log.inspect();
  if (!stands.empty())
    return stands;
  std::lock_guard<std::mutex> lock(lastTaskMutex);
  return lastTask.empty() ? "" : "the last task was " + lastTask;
}

void DeviceRank::Parts::settle(EventSlot &slot) {
  if (!slot.needsPeer() || slot.settled)
    return;
  waitForPeer([&] { links->settle(slot.handle); });
  slot.settled = true;
}

void DeviceRank::record(Stream stream, int64_t event) {
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(stream);
  parts->chaos.strike(handle);
  parts->watchdog.touch();
  PIPEWRIGHT_CUDA(cuEventRecord(slot.handle, handle));
  slot.state = EventSlot::State::Recorded;
  if (digesting())
    parts->arrivals.record(stream, event);
}

void DeviceRank::wait(Stream stream, int64_t event) {
  EventSlot &slot = parts->slot(event);
  if (slot.state == EventSlot::State::Unused)
    fail("event ", event, " is waited for before it is recorded");
  CUstream handle = parts->handle(stream);
  parts->settle(slot);
  const bool isTraced = parts->traced && stream == compute && slot.needsPeer();
  if (stream == compute && slot.needsPeer())
    parts->log.wait(slot.stream(), slot.handle);
  CUevent begin = isTraced ? parts->trace.mark(handle) : nullptr;
  parts->watchdog.touch();
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(handle, slot.handle, 0));
  digestWait(stream, event);
  if (!isTraced)
    return;
  const auto category = slot.state == EventSlot::State::Collective
                            ? Trace::Category::CollectiveWait
                            : Trace::Category::Wait;
  parts->trace.add({category, slot.verb(), slot.peer}, begin,
                   parts->trace.mark(handle));
}

/// A transfer, or in a rehearsal the event of one: what is received is zero.
void DeviceRank::post(bool isSend, int64_t peer, Buffer buffer, int64_t event) {
  const Stream stream = isSend ? sendTo(peer) : receiveFrom(peer);
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(stream);
  void *data = device<void>(buffer);
  if (parts->rehearsing) {
    if (!isSend && buffer.bytes)
      PIPEWRIGHT_CUDA(
          cuMemsetD8Async(addressOf(data), 0, buffer.bytes, handle));
    return record(stream, event);
  }
  parts->chaos.strike(handle);
  flight().post(isSend ? FlightRecorder::PostSend : FlightRecorder::PostReceive,
                peer);
  slot = {slot.handle,
          isSend ? EventSlot::State::Send : EventSlot::State::Receive, peer,
          false};
  digestPost(isSend, peer, buffer, event);
  if (parts->traced)
    parts->trace.add({Trace::Category::Transfer, slot.verb(), peer},
                     parts->trace.mark(handle), slot.handle);
  // A link's own deadline speaks first: it knows more.
  parts->watchdog.allow(1.5);
  parts->withPosition([&] {
    DeviceLinks &links = *parts->links;
    const int64_t process = wholeProgram().mesh().processAt({peer, replica()});
    if (isSend)
      links.send(process, data, buffer.bytes, handle, slot.handle);
    else
      links.receive(process, data, buffer.bytes, handle, slot.handle);
  });
  parts->watchdog.allow(1);
  parts->log.transfer(stream, buffer.bytes, slot.handle,
                      parts->links->recorded(slot.handle));
}

void DeviceRank::postSend(int64_t peer, Buffer buffer, int64_t event) {
  post(/*isSend=*/true, peer, buffer, event);
}

void DeviceRank::postReceive(int64_t peer, Buffer buffer, int64_t event) {
  post(/*isSend=*/false, peer, buffer, event);
}

/// The event is recorded behind the copy.
template <class Copy>
void DeviceRank::copy(Stream stream, int64_t bytes, int64_t event,
                      const Copy &enqueue) {
  CUstream handle = parts->handle(stream);
  parts->chaos.strike(handle);
  CUevent begin = parts->traced ? parts->trace.mark(handle) : nullptr;
  if (bytes > 0)
    enqueue(handle);
  record(stream, event);
  CUevent done = parts->slot(event).handle;
  if (parts->traced)
    parts->trace.add(
        {Trace::Category::Copy, stream == toHost ? "to" : "from", -1}, begin,
        done);
  parts->log.transfer(stream, bytes, done);
}

void DeviceRank::copyToHost(Buffer stash, Buffer host, int64_t event) {
  copy(toHost, stash.bytes, event, [&](CUstream handle) {
    PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(parts->onHost.resolve(host),
                                      addressOf(device<void>(stash)),
                                      stash.bytes, handle));
  });
}

void DeviceRank::copyFromHost(Buffer host, Buffer stash, int64_t event) {
  copy(fromHost, stash.bytes, event, [&](CUstream handle) {
    PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(addressOf(device<void>(stash)),
                                      parts->onHost.resolve(host), stash.bytes,
                                      handle));
  });
}

/// A collective, or in a rehearsal the event of one.
void DeviceRank::postCollective(const GroupRequest &request) {
  const auto &[kind, group, type, range, scratch, root, event] = request;
  const Collective what = collectiveOf(wholeProgram(), request);
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(collective);
  if (parts->rehearsing)
    return record(collective, event);
  parts->chaos.strike(handle);
  flight().post(FlightRecorder::PostCollective, group);
  digestCollective(request);
  slot = {slot.handle, EventSlot::State::Collective, group, false,
          what.facts().text};
  if (parts->traced)
    parts->trace.add({Trace::Category::Collective, slot.verb(), group},
                     parts->trace.mark(handle), slot.handle);
  // As for transfers.
  parts->watchdog.allow(1.5);
  parts->withPosition([&] {
    parts->links->collect(
        groupNumber(wholeProgram(), group, transport().rank()), what,
        device<void>(range), handle, slot.handle);
  });
  parts->watchdog.allow(1);
  parts->log.transfer(collective, range.bytes, slot.handle,
                      parts->links->recorded(slot.handle));
}

void DeviceRank::beginStatistics() {
  if (replica() == 0)
    return;
  for (const TensorInfo &tensor : program().tensors)
    if (tensor.isRunning())
      PIPEWRIGHT_CUDA(cuMemsetD8Async(addressOf(device<void>(tensor.buffer)), 0,
                                      tensor.buffer.bytes, parts->computing));
}

void DeviceRank::mergeStatistics(int64_t stage) {
  // In a rehearsal no other replica comes to meet this one.
  if (parts->rehearsing)
    return;
  // What members of groups tell each other goes over the transport as well,
  // whose messages end in the order in which they began.
  parts->waitForPeer([&] { parts->links->settleGroups(); });
  parts->drain({parts->computing}, transport());
  parts->waitForPeer([&] { sumStatistics(stage); });
}

//===----------------------------------------------------------------------===//
// Waiting for the GPU
//===----------------------------------------------------------------------===//

bool DeviceRank::Parts::isIdle(CUstream stream) {
  const CUresult result = cudaDriver().cuStreamQuery(stream);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
    return result == CUDA_SUCCESS;
  fail("GPU ", device->number(), " has failed: ", cudaErrorText(result),
       position());
}

void DeviceRank::Parts::drain(const std::vector<CUstream> &which,
                              Transport &transport) {
  auto lastProgress = Clock::now();
  auto pause = std::chrono::microseconds(10);
  for (CUstream stream : which)
    while (!isIdle(stream)) {
      watchdog.touch();
      withPosition([&] {
        links->check();
        transport.poll();
      });
      if (log.advance())
        lastProgress = Clock::now();
      const std::chrono::duration<double> waited = Clock::now() - lastProgress;
      // Who only waits for another rank lets that one speak first.
      const double patience = log.waitsForPeer() ? 1.25 : 1;
      if (waited.count() > settings.timeout * patience)
        fail("GPU ", device->number(), " has come no further for ",
             settings.timeout, " s: ", log.position(),
             " (--timeout changes it)");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(80));
    }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *DeviceRank::resolve(Buffer buffer) {
  return parts->arena.resolve(buffer);
}

void DeviceRank::read(Buffer buffer, void *destination) {
  if (buffer)
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(destination, addressOf(device<void>(buffer)),
                                 buffer.bytes));
}

void DeviceRank::write(Buffer buffer, const void *source) {
  if (buffer)
    copyToDevice(addressOf(device<void>(buffer)), source, buffer.bytes);
}

int64_t DeviceRank::arenaPeak() const { return parts->arena.peak(); }
int64_t DeviceRank::arenaBytes() const { return parts->arena.bytes(); }
int64_t DeviceRank::aheadBytes() const { return parts->ahead.bytes(); }
int64_t DeviceRank::pinnedBytes() const {
  return parts->steps[0].bytes() + parts->steps[1].bytes() +
         parts->evaluations.bytes() + parts->mailbox.memory.bytes() +
         parts->squares.onHost.bytes() + parts->offloaded.bytes();
}
int64_t DeviceRank::graphs() const { return parts->graphs.count(); }

void DeviceRank::reserveWorkspace(int64_t bytes) {
  const int64_t now = parts->workspace.bytes();
  if (bytes <= now)
    return;
  if (parts->started)
    fail("a kernel wants ", bytes, " bytes of workspace in a step, but ", now,
         " were reserved before the first");
  parts->workspace = DeviceMemory();
  parts->workspace = DeviceMemory(*parts->device, bytes, "workspace");
  countScratch(bytes - now);
}

void *DeviceRank::workspace(int64_t bytes) {
  if (bytes > parts->workspace.bytes())
    reserveWorkspace(bytes);
  return reinterpret_cast<void *>(parts->workspace.address());
}

const uint64_t *DeviceRank::randomState() const {
  return reinterpret_cast<const uint64_t *>(parts->stepState.address());
}

IndexFault *DeviceRank::indexFault() const {
  return reinterpret_cast<IndexFault *>(parts->stepState.address() +
                                        offsetof(StepState, fault));
}

CUstream_st *DeviceRank::computeStream() {
  // Every call that enqueues asks for it.
  parts->watchdog.touch();
  return parts->computing;
}

Device &DeviceRank::gpu() { return *parts->device; }

int64_t DeviceRank::freeMultiprocessors() const {
  const int64_t held = parts->links->multiprocessorsHeld();
  const int64_t all =
      parts->device->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return held ? std::max(all - held, all / 2) : 0;
}

const DeviceSettings &DeviceRank::settings() const { return parts->settings; }
