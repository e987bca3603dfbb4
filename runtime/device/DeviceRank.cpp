//===- DeviceRank.cpp - One worker of the pipeline, on a GPU --------------===//

#include "runtime/device/DeviceRank.h"
#include "runtime/core/Error.h"
#include "runtime/device/Chaos.h"
#include "runtime/device/Device.h"
#include "runtime/device/DeviceTrace.h"
#include "runtime/device/NamedRange.h"
#include "runtime/device/Staging.h"
#include "runtime/device/TaskGraphs.h"
#include "runtime/device/WorkLog.h"
#include "runtime/device/kernels/Builtins.h"
#include "runtime/io/Source.h"
#include "runtime/transport/DeviceLinks.h"
#include "runtime/transport/Transport.h"

#include <chrono>
#include <exception>
#include <set>
#include <thread>
#include <unordered_map>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

namespace {

/// An event of the program, as the running step has left it.
struct EventSlot {
  enum class State { Unused, Recorded, Send, Receive };

  CUevent handle = nullptr;
  State state = State::Unused;
  /// Of a transfer: the other end, and whether streams may wait for it yet.
  int64_t peer = -1;
  bool settled = false;

  bool isTransfer() const {
    return state == State::Send || state == State::Receive;
  }
  Stream stream() const {
    return state == State::Send ? sendTo(peer) : receiveFrom(peer);
  }
  const char *verb() const { return state == State::Send ? "send" : "receive"; }
};

/// What the GPU reads and writes at fixed places of pinned memory.
struct Mailbox {
  PinnedMemory memory;
  uint64_t *random = nullptr;
  /// Four numbers for each update.
  float *hyper = nullptr;
  float *losses = nullptr;
  int64_t capacity = 0;

  explicit Mailbox(const Program &program)
      : memory(16 + program.updates * 16 + program.microBatches * 4),
        random(memory.data<uint64_t>()),
        hyper(reinterpret_cast<float *>(random + 2)),
        losses(hyper + 4 * program.updates), capacity(program.microBatches) {}
};

} // namespace

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

/// Destroyed from the last to the first: links and streams go before memory.
struct DeviceRank::Parts {
  Parts(const Program &program, int64_t number, std::shared_ptr<Device> gpu,
        std::unique_ptr<DeviceLinks> connected, const DeviceSettings &settings);
  ~Parts();

  CUstream handle(Stream stream) const;
  EventSlot &slot(int64_t event);
  /// Calls of links: what they throw gets where the streams stand behind it.
  template <class Body>
  void withPosition(const Body &body);
  /// For what a stream may wait for.
  void settle(EventSlot &slot);
  bool isIdle(CUstream stream);
  /// Waits until the streams have nothing left to do.
  void drain(const std::vector<CUstream> &which, Transport &transport);

  const DeviceSettings settings;
  std::shared_ptr<Device> device;
  DeviceMemory memory, random, workspace;
  Arena arena;
  Mailbox mailbox;
  Staging staging;
  std::unordered_map<const DeviceKernel *, std::vector<CUfunction>> kernels;

  CUstream computing = nullptr;
  /// By peer; null where there is no link.
  std::vector<CUstream> sending, receiving;
  std::vector<CUstream> streams;
  std::vector<EventSlot> events;
  /// Whether the events keep times.
  bool timed = false;

  TaskGraphs graphs;
  WorkLog log;
  Chaos chaos;
  DeviceTrace trace;
  bool traced = false;
  /// By kind of run: step, evaluation.
  bool isFirstRun[2] = {true, true};
  /// Nothing may be allocated any more.
  bool started = false;
  bool failed = false;

  /// The micro-batches whose losses the running step has copied to the host.
  std::set<int64_t> reported;
  /// Where gradients go at the first update, while they are asked for.
  PinnedMemory gradients;
  bool capturing = false, captured = false;

  std::unique_ptr<DeviceLinks> links;
};

static const char *const linkFault =
    ": the program was compiled without this link";

DeviceRank::Parts::Parts(const Program &program, int64_t number,
                         std::shared_ptr<Device> gpu,
                         std::unique_ptr<DeviceLinks> connected,
                         const DeviceSettings &settings)
    : settings(settings), device(std::move(gpu)),
      memory(*device, program.ranks.at(number).arenaBytes, "arena"),
      random(*device, 16, "random state"),
      arena(reinterpret_cast<void *>(memory.address()), memory.bytes()),
      mailbox(program), sending(program.ranks.size()),
      receiving(program.ranks.size()), graphs(settings.graphs),
      chaos(settings.chaos, number), links(std::move(connected)) {
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
  int64_t inputBytes = 0;
  for (int64_t input : program.ranks[number].inputs) {
    const InputInfo &info = program.inputs.at(input);
    inputBytes +=
        Staging::padded(elementCount(info.shape) * byteWidth(info.type));
  }
  staging.reserve(inputBytes * program.microBatches);
  const RankProgram &own = program.ranks[number];
  const int64_t known = std::max(own.events, own.evaluateEvents);
  if (known)
    slot(known - 1);
}

DeviceRank::Parts::~Parts() {
  const Driver &driver = cudaDriver();
  for (const EventSlot &event : events)
    driver.cuEventDestroy(event.handle);
  for (CUstream stream : streams)
    driver.cuStreamDestroy(stream);
}

DeviceRank::DeviceRank(const Program &program, int64_t number,
                       Transport &transport, std::shared_ptr<Device> device,
                       std::unique_ptr<DeviceLinks> links,
                       const DeviceSettings &settings)
    : Rank(program, number, transport, NoArena()) {
  if (!program.device)
    fail("the program was compiled for CPUs");
  device->makeCurrent();
  parts = std::make_unique<Parts>(program, number, std::move(device),
                                  std::move(links), settings);
  // Loading a module may wait for the whole GPU: never in a step, where
  // streams wait for what this thread has yet to enqueue.
  prepareBuiltin(*this, "set_values");
}

DeviceRank::~DeviceRank() {
  if (std::uncaught_exceptions())
    abort();
  // Giving memory back waits for the GPU, which may never come to an end. The
  // process does, and the driver clears up behind it.
  if (parts->failed)
    static_cast<void>(parts.release());
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

template <class Body>
void DeviceRank::Parts::withPosition(const Body &body) {
  try {
    body();
  } catch (const Aborted &) {
    throw;
  } catch (const Error &error) {
    log.advance();
    const std::string position = log.position();
    fail(error.what(), position.empty() ? "" : "; ", position);
  }
}

void DeviceRank::Parts::settle(EventSlot &slot) {
  if (!slot.isTransfer() || slot.settled)
    return;
  withPosition([&] { links->settle(slot.handle); });
  slot.settled = true;
}

void DeviceRank::record(Stream stream, int64_t event) {
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(stream);
  parts->chaos.strike(handle);
  PIPEWRIGHT_CUDA(cuEventRecord(slot.handle, handle));
  slot.state = EventSlot::State::Recorded;
}

void DeviceRank::wait(Stream stream, int64_t event) {
  EventSlot &slot = parts->slot(event);
  if (slot.state == EventSlot::State::Unused)
    fail("event ", event, " is waited for before it is recorded");
  CUstream handle = parts->handle(stream);
  parts->settle(slot);
  const bool isTraced = parts->traced && stream == compute && slot.isTransfer();
  if (stream == compute && slot.isTransfer())
    parts->log.wait(slot.stream(), slot.handle);
  CUevent begin = isTraced ? parts->trace.mark(handle) : nullptr;
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(handle, slot.handle, 0));
  if (isTraced)
    parts->trace.wait(slot.verb(), slot.peer, begin, parts->trace.mark(handle));
}

void DeviceRank::postSend(int64_t peer, Buffer buffer, int64_t event) {
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(sendTo(peer));
  parts->chaos.strike(handle);
  slot = {slot.handle, EventSlot::State::Send, peer, false};
  if (parts->traced)
    parts->trace.transfer("send", peer, parts->trace.mark(handle), slot.handle);
  void *data = device<void>(buffer);
  parts->withPosition([&] {
    parts->links->send(peer, data, buffer.bytes, handle, slot.handle);
  });
  parts->log.transfer(sendTo(peer), buffer.bytes, slot.handle);
}

void DeviceRank::postReceive(int64_t peer, Buffer buffer, int64_t event) {
  EventSlot &slot = parts->slot(event);
  CUstream handle = parts->handle(receiveFrom(peer));
  parts->chaos.strike(handle);
  slot = {slot.handle, EventSlot::State::Receive, peer, false};
  if (parts->traced)
    parts->trace.transfer("receive", peer, parts->trace.mark(handle),
                          slot.handle);
  void *data = device<void>(buffer);
  parts->withPosition([&] {
    parts->links->receive(peer, data, buffer.bytes, handle, slot.handle);
  });
  parts->log.transfer(receiveFrom(peer), buffer.bytes, slot.handle);
}

//===----------------------------------------------------------------------===//
// Tasks, and what crosses the border of a step
//===----------------------------------------------------------------------===//

void DeviceRank::task(const char *kind, int64_t stage, int64_t microBatch,
                      const std::function<void()> &body) {
  Parts &p = *parts;
  const bool isUpdate = kind[0] == 'U';
  if (isUpdate && p.capturing && !p.captured)
    enqueueGradients();
  if (isUpdate)
    microBatch = update();
  const NamedRange range(taskName(kind, stage, microBatch) + " rank " +
                         std::to_string(number()));
  p.chaos.strike(p.computing);
  CUevent begin = p.traced ? p.trace.mark(p.computing) : nullptr;
  p.graphs.run(p.computing, body);
  if (p.traced)
    p.trace.task(kind, stage, microBatch, begin, p.trace.mark(p.computing));
  p.log.task(p.computing, kind, stage, microBatch);
}

static CUdeviceptr addressOf(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

void DeviceRank::loadInput(int64_t input, int64_t microBatch,
                           Buffer destination) {
  if (!destination)
    return;
  void *staged = parts->staging.take(destination.bytes);
  batchIo().load(input, microBatch, staged, destination.bytes);
  parts->chaos.strike(parts->computing);
  PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(addressOf(device<void>(destination)),
                                    staged, destination.bytes,
                                    parts->computing));
}

void DeviceRank::storeOutput(int64_t output, int64_t microBatch,
                             Buffer source) {
  if (!source || !batchIo().wants(output, microBatch))
    return;
  parts->drain({parts->computing}, transport());
  std::vector<char> values(source.bytes);
  read(source, values.data());
  batchIo().store(output, microBatch, values.data(), source.bytes);
}

void DeviceRank::reportLoss(int64_t microBatch, Buffer loss) {
  if (microBatch < 0 || microBatch >= parts->mailbox.capacity)
    fail("a step reports the loss of micro-batch ", microBatch,
         ", which it does not have");
  PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(parts->mailbox.losses + microBatch,
                                    addressOf(device<float>(loss)),
                                    sizeof(float), parts->computing));
  parts->reported.insert(microBatch);
  parts->graphs.whenReplayed(
      [this, microBatch] { parts->reported.insert(microBatch); });
}

void DeviceRank::beginUpdate(int64_t number) {
  Rank::beginUpdate(number);
  std::copy(hyper(), hyper() + 4, parts->mailbox.hyper + 4 * number);
}

void DeviceRank::loadHyper(Buffer destination) {
  // Each update has a place of its own, so that a graph may read it later.
  PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(addressOf(device<float>(destination)),
                                    parts->mailbox.hyper + 4 * update(),
                                    4 * sizeof(float), parts->computing));
}

void DeviceRank::captureGradients() {
  int64_t bytes = 0;
  for (const WeightInfo &weight : program().weights)
    bytes += weight.gradient.bytes;
  parts->gradients = PinnedMemory(bytes);
  parts->capturing = true;
}

void DeviceRank::enqueueGradients() {
  char *to = parts->gradients.data();
  for (const WeightInfo &weight : program().weights) {
    if (!weight.gradient)
      continue;
    PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(to,
                                      addressOf(device<float>(weight.gradient)),
                                      weight.gradient.bytes, parts->computing));
    to += weight.gradient.bytes;
  }
  parts->captured = true;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void DeviceRank::runStep() { run(false, program().step); }
void DeviceRank::runEvaluation() { run(true, program().evaluate); }

void DeviceRank::run(bool evaluation, void (*function)(Rank &)) {
  begin(evaluation);
  function(*this);
  finish();
}

void DeviceRank::begin(bool evaluation) {
  Parts &p = *parts;
  p.started = true;
  // Later runs give the same transfers.
  p.links->compareSizes(p.isFirstRun[evaluation]);
  p.isFirstRun[evaluation] = false;
  p.traced = tracing() != nullptr;
  if (p.traced && !p.timed) {
    for (const EventSlot &event : p.events)
      PIPEWRIGHT_CUDA(cuEventDestroy(event.handle));
    p.events.clear();
    p.timed = true;
  }
  for (EventSlot &event : p.events)
    event.state = EventSlot::State::Unused;
  p.graphs.begin(evaluation);
  p.log.clear();
  p.staging.rewind();
  p.reported.clear();
  if (p.traced)
    p.trace.begin(p.computing);
  p.mailbox.random[0] = seed();
  p.mailbox.random[1] = static_cast<uint64_t>(step());
  PIPEWRIGHT_CUDA(
      cuMemcpyHtoDAsync(p.random.address(), p.mailbox.random, 16, p.computing));
}

void DeviceRank::finish() {
  Parts &p = *parts;
  p.withPosition([&] { p.links->settleAll(); });
  p.drain(p.streams, transport());
  for (int64_t microBatch : p.reported)
    addLoss(microBatch, p.mailbox.losses[microBatch]);
  if (p.traced)
    p.trace.finish(*tracing());
  p.traced = false;
  if (!p.captured)
    return;
  std::vector<std::vector<float>> sums;
  const float *from = p.gradients.data<float>();
  for (const WeightInfo &weight : program().weights) {
    const int64_t count = weight.gradient.bytes / 4;
    sums.emplace_back(from, from + count);
    from += count;
  }
  keepGradients(std::move(sums));
  p.gradients = PinnedMemory();
  p.capturing = p.captured = false;
}

bool DeviceRank::Parts::isIdle(CUstream stream) {
  const CUresult result = cudaDriver().cuStreamQuery(stream);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
    return result == CUDA_SUCCESS;
  log.advance();
  const std::string position = log.position();
  fail("GPU ", device->number(), " has failed: ", cudaErrorText(result),
       position.empty() ? "" : "; ", position);
}

void DeviceRank::Parts::drain(const std::vector<CUstream> &which,
                              Transport &transport) {
  auto lastProgress = Clock::now();
  auto pause = std::chrono::microseconds(10);
  for (CUstream stream : which)
    while (!isIdle(stream)) {
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
    PIPEWRIGHT_CUDA(
        cuMemcpyHtoD(addressOf(device<void>(buffer)), source, buffer.bytes));
}

int64_t DeviceRank::arenaPeak() const { return parts->arena.peak(); }
int64_t DeviceRank::arenaBytes() const { return parts->arena.bytes(); }
int64_t DeviceRank::pinnedBytes() const {
  return parts->staging.bytes() + parts->mailbox.memory.bytes();
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
  return reinterpret_cast<const uint64_t *>(parts->random.address());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

CUstream_st *DeviceRank::computeStream() { return parts->computing; }

Device &DeviceRank::gpu() { return *parts->device; }

const std::vector<CUfunc_st *> &
DeviceRank::functions(const DeviceKernel &kernel) {
  auto found = parts->kernels.find(&kernel);
  if (found != parts->kernels.end())
    return found->second;
  std::vector<CUfunction> functions;
  for (const KernelLaunch &launch : kernel.launches)
    functions.push_back(
        parts->device->find(wholeProgram().device->images, launch.entry));
  return parts->kernels[&kernel] = std::move(functions);
}

void pipewright::runtime::prepare(DeviceRank &rank,
                                  const DeviceKernel &kernel) {
  rank.functions(kernel);
  rank.reserveWorkspace(kernel.scratchBytes);
}

void pipewright::runtime::launch(DeviceRank &rank, const DeviceKernel &kernel,
                                 std::initializer_list<Buffer> arguments) {
  std::vector<void *> pointers;
  pointers.reserve(arguments.size() + 1);
  for (Buffer argument : arguments)
    pointers.push_back(rank.device<void>(argument));
  if (kernel.scratchBytes)
    pointers.push_back(rank.workspace(kernel.scratchBytes));
  std::vector<void *> parameters;
  parameters.reserve(pointers.size());
  for (void *&pointer : pointers)
    parameters.push_back(&pointer);
  const std::vector<CUfunction> &functions = rank.functions(kernel);
  for (size_t i = 0; i < functions.size(); ++i) {
    const KernelLaunch &shape = kernel.launches[i];
    const CUresult result = cudaDriver().cuLaunchKernel(
        functions[i], static_cast<unsigned>(shape.grid), 1, 1,
        static_cast<unsigned>(shape.block), 1, 1, 0, rank.computeStream(),
        parameters.data(), nullptr);
    if (result != CUDA_SUCCESS)
      fail("kernel '", shape.entry, "' cannot be launched (", shape.grid,
           " blocks of ", shape.block, " threads): ", cudaErrorText(result));
  }
}
