//===- DeviceStep.cpp - What a step does on a GPU -------------------------===//

#include "runtime/calls/Indices.h"
#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/NamedRange.h"

#include <optional>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void DeviceRank::task(const char *kind, int64_t stage, int64_t microBatch,
                      TaskBody body) {
  Parts &p = *parts;
  const bool isUpdate = kind[0] == 'U';
  if (isUpdate && p.capturing)
    enqueueGradients(stage);
  if (isUpdate)
    microBatch = update();
  {
    std::lock_guard<std::mutex> lock(p.lastTaskMutex);
    p.lastTask = taskName(kind, stage, microBatch);
  }
  if (StepDigest *digest = digesting())
    digest->beginTask(kind, stage, microBatch);
  // When the host gave it to the GPU, which may be before it runs.
  flight().task(kind[0], stage, microBatch);
  p.watchdog.touch();
  const NamedRange range(p.lastTask + " rank " + std::to_string(number()));
  p.chaos.strike(p.computing);
  CUevent begin = p.traced ? p.trace.mark(p.computing) : nullptr;
  p.graphs.run(p.computing, body);
  if (p.traced)
    p.trace.add({Trace::Category::Task, kind, stage, microBatch}, begin,
                p.trace.mark(p.computing));
  p.log.task(p.computing, kind, stage, microBatch);
  flight().end();
}

void DeviceRank::resume(TaskBody body) {
  Parts &p = *parts;
  p.watchdog.touch();
  const NamedRange range(p.lastTask + " rank " + std::to_string(number()));
  p.chaos.strike(p.computing);
  p.graphs.run(p.computing, body);
  if (p.traced)
    p.trace.extendTask(p.trace.mark(p.computing));
}

//===----------------------------------------------------------------------===//
// What crosses the border of a step
//===----------------------------------------------------------------------===//

void DeviceRank::loadInput(int64_t input, int64_t microBatch,
                           Buffer destination) {
  if (!destination)
    return;
  Staging::Piece staged;
  {
    const Unwatched unwatched(parts->watchdog);
    staged =
        parts->staging->load(batchIo(), input, microBatch, destination.bytes);
  }
  parts->chaos.strike(parts->computing);
  parts->watchdog.touch();
  const CUdeviceptr address = addressOf(device<void>(destination));
  if (!parts->ahead.take(staged, address, parts->computing))
    PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(address, staged.data, staged.bytes,
                                      parts->computing));
  if (digesting())
    digestValue(StepDigest::Kind::Input, input, microBatch, destination);
}

void DeviceRank::storeOutput(int64_t output, int64_t microBatch,
                             Buffer source) {
  // A rehearsal wants what outputs are computed with, not the outputs.
  if (!source || parts->rehearsing || !batchIo().wants(output, microBatch))
    return;
  parts->drain({parts->computing}, transport());
  PIPEWRIGHT_CUDA(cuMemcpyDtoH(parts->mailbox.fault, addressOf(indexFault()),
                               sizeof(IndexFault)));
  refuseIndices();
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
  Worker::beginUpdate(number);
  mailScalars();
}

/// Puts the scalars of the running update where the GPU takes them from.
void DeviceRank::mailScalars() {
  const int64_t count = wholeProgram().optimizer.scalars.size();
  std::copy(hyper(), hyper() + count, parts->mailbox.hyper + count * update());
}

void DeviceRank::loadHyper(Buffer destination) {
  // Each update has a place of its own, so that a graph may read it later.
  const int64_t count = wholeProgram().optimizer.scalars.size();
  PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(addressOf(device<float>(destination)),
                                    parts->mailbox.hyper + count * update(),
                                    count * sizeof(float), parts->computing));
}

void DeviceRank::captureGradients() {
  int64_t bytes = 0;
  for (const TensorInfo &tensor : program().tensors)
    if (tensor.isWholeGradient())
      bytes += tensor.buffer.bytes;
  parts->gradients = PinnedMemory(bytes);
  parts->capturing = true;
  // Pinning may wait for the GPUs of this process, and a rank that has begun
  // its step may make its GPU wait for this one.
  transport().barrier();
}

void DeviceRank::enqueueGradients(int64_t stageOfUpdate) {
  char *to = parts->gradients.data();
  for (const TensorInfo &tensor : program().tensors) {
    if (!tensor.isWholeGradient())
      continue;
    const TensorPart part = tensor.storedOn(replica());
    if (part.buffer.bytes > 0 &&
        (tensor.stage < 0 ? !parts->captured : tensor.stage == stageOfUpdate))
      PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(to + part.begin,
                                        addressOf(device<float>(part.buffer)),
                                        part.buffer.bytes, parts->computing));
    to += tensor.buffer.bytes;
  }
  parts->captured = true;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void DeviceRank::setUp() {
  if (program().setUp)
    program().setUp(*this);
}

void DeviceRank::runStep() { run(false, program().step); }
void DeviceRank::runEvaluation() { run(true, program().evaluate); }

void DeviceRank::run(bool evaluation, const EntryPoint &function) {
  Parts &p = *parts;
  // In a rehearsal nobody is waited for, and first uses may take long.
  std::optional<Watched> watched;
  if (!p.rehearsing)
    watched.emplace(p.watchdog);
  try {
    begin(evaluation);
    function(*this);
    // The GPU is at work: time to load what it will want next.
    if (BatchIo *next = evaluation ? nullptr : batchIo().next()) {
      const Unwatched unwatched(p.watchdog);
      Staging &waiting = p.steps[1 - p.turn];
      waiting.prefetch(*next, *p.staging);
      p.ahead.send(waiting, p.chaos);
    }
    finish();
  } catch (const Aborted &) {
    // If it was the watchdog that gave up, this throws its reason.
    p.watchdog.touch();
    throw;
  }
}

/// Chooses where inputs are staged: those of a step may be there already.
void DeviceRank::beginStaging(bool evaluation) {
  Parts &p = *parts;
  if (!evaluation)
    p.turn = 1 - p.turn;
  p.staging = evaluation ? &p.evaluations : &p.steps[p.turn];
  p.staging->begin(batchIo());
}

/// Graphs know nothing of outputs, which few runs want.
bool DeviceRank::wantsAnyOutput() {
  for (int64_t m = 0; m < wholeProgram().microBatches; ++m)
    if (wantsOutputs(m))
      return true;
  return false;
}

void DeviceRank::begin(bool evaluation) {
  Parts &p = *parts;
  p.started = true;
  if (!p.rehearsing) {
    // Later runs give the same transfers.
    p.links->compareSizes(p.isFirstRun[evaluation]);
    p.isFirstRun[evaluation] = false;
  }
  p.traced = tracing() != nullptr;
  if (p.traced && !p.timed) {
    for (const EventSlot &event : p.events)
      PIPEWRIGHT_CUDA(cuEventDestroy(event.handle));
    p.events.clear();
    p.timed = true;
  }
  for (EventSlot &event : p.events)
    event.state = EventSlot::State::Unused;
  p.profiled = profiling() != nullptr;
  if (p.profiled)
    p.profile.begin();
  p.graphs.begin(evaluation, p.profiled || (evaluation && !p.rehearsing &&
                                            wantsAnyOutput()));
  p.log.clear();
  p.arrivals.clear();
  beginStaging(evaluation);
  p.reported.clear();
  if (p.traced)
    p.trace.begin(p.computing);
  *p.mailbox.state = {seed(), static_cast<uint64_t>(step()), {}};
  PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(p.stepState.address(), p.mailbox.state,
                                    sizeof(StepState), p.computing));
}

/// Once the GPU has done all that was asked of it.
void DeviceRank::refuseIndices() {
  const IndexFault &fault = *parts->mailbox.fault;
  if (fault.kind == IndexFault::Row)
    failRow(fault.index, fault.size);
  if (fault.kind == IndexFault::Label)
    failLabel(fault.index, fault.size);
}

void DeviceRank::finish() {
  Parts &p = *parts;
  PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(p.mailbox.fault, addressOf(indexFault()),
                                    sizeof(IndexFault), p.computing));
  if (!p.rehearsing)
    p.waitForPeer([&] { p.links->settleAll(); });
  p.drain(p.streams, transport());
  // What a model computes from the zeros of a rehearsal may be any index.
  if (!p.rehearsing)
    refuseIndices();
  if (!p.rehearsing)
    for (int64_t microBatch : p.reported)
      addLoss(microBatch, p.mailbox.losses[microBatch]);
  if (p.traced)
    p.trace.finish(*tracing());
  p.traced = false;
  if (p.profiled)
    p.profile.finish(*profiling());
  p.profiled = false;
  if (p.captured)
    takeGradients();
}

/// The memory stays: giving it back may wait for other ranks' GPUs.
void DeviceRank::takeGradients() {
  std::vector<std::vector<float>> sums;
  const float *from = parts->gradients.data<float>();
  for (const TensorInfo &tensor : program().tensors) {
    const int64_t count =
        tensor.isWholeGradient() ? tensor.buffer.bytes / 4 : 0;
    sums.emplace_back(from, from + count);
    from += count;
  }
  keepGradients(std::move(sums));
  parts->capturing = parts->captured = false;
}
