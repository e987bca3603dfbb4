//===- StreamThreads.cpp - What a stream does, in its thread -------------===//

#include "test/doubles/cuda/Internal.h"

using namespace pipewright::doubles;

/// Up to a fifth of a millisecond before every other operation: longer than
/// the operations of a toy model, so that they change places.
static void delay(Stream *stream) {
  if (!state().settings.chaosSeed)
    return;
  const uint64_t draw = stream->chaos();
  if (draw & 1)
    std::this_thread::sleep_for(std::chrono::microseconds((draw >> 1) % 200));
}

/// Reports an access of the operation that nothing orders with an earlier one.
static void noteAccess(Stream *stream, const std::string &name,
                       uint64_t address, uint64_t bytes, bool write) {
  std::shared_ptr<Allocation> allocation = findAllocation(address);
  if (!allocation || !allocation->shadow || bytes == 0)
    return;
  const Shadow::Toucher by = {stream->clock.of(stream->index), stream->index,
                              internName(name)};
  const std::string other = allocation->shadow->access(
      address - allocation->begin, bytes, write, by, stream->clock);
  if (!other.empty())
    throw DeviceFault(CUDA_ERROR_LAUNCH_FAILED,
                      std::string("race: nothing orders a ") +
                          (write ? "write" : "read") + " by '" + name +
                          "' on stream " + std::to_string(stream->index) +
                          " with " + other);
}

void pipewright::doubles::noteKernelAccess(const std::string &name,
                                           uint64_t address, uint64_t bytes,
                                           bool write) {
  noteAccess(operationStream(), name, address, bytes, write);
}

void pipewright::doubles::noteAccesses(const Operation &operation) {
  if (!state().settings.races)
    return;
  for (const Access &access : operation.accesses)
    noteAccess(operationStream(), operation.name,
               reinterpret_cast<uint64_t>(access.address), access.bytes,
               access.write);
}

static void runOperation(Stream *stream, const Operation &operation) {
  if (state().settings.log)
    note("stream " + std::to_string(stream->index) + ": " + operation.name);
  noteAccesses(operation);
  operation.run();
}

static void runWork(Stream *stream, const Work &work) {
  Context *context = stream->context;
  if (context->error != CUDA_SUCCESS && !work.always)
    return;
  delay(stream);
  stream->clock.join(work.hostClock);
  stream->clock.set(stream->index, stream->clock.of(stream->index) + 1);
  try {
    runOperation(stream, work.operation);
  } catch (const DeviceFault &fault) {
    report(context, fault.code, work.operation.name + ": " + fault.what());
  } catch (const pipewright::ptx::Fault &fault) {
    report(context, toResult(fault), work.operation.name + ": " + fault.what());
  } catch (const std::exception &error) {
    report(context, CUDA_ERROR_LAUNCH_FAILED,
           work.operation.name + ": " + error.what());
  }
}

static void releaseQuarantine() {
  State &all = state();
  std::unique_lock<std::shared_mutex> lock(all.memoryMutex, std::try_to_lock);
  if (lock && all.pendingWork == 0)
    all.quarantine.clear();
}

static void serve(const std::shared_ptr<Stream> &stream) {
  operationContext() = stream->context;
  operationStream() = stream.get();
  std::unique_lock<std::mutex> lock(stream->mutex);
  while (true) {
    stream->changed.wait(
        lock, [&] { return stream->closing || !stream->queue.empty(); });
    if (stream->queue.empty())
      break;
    {
      Work work = std::move(stream->queue.front());
      stream->queue.pop_front();
      lock.unlock();
      runWork(stream.get(), work);
    }
    if (--state().pendingWork == 0)
      releaseQuarantine();
    lock.lock();
    ++stream->finished;
    stream->changed.notify_all();
  }
  lock.unlock();
  std::lock_guard<std::mutex> allLock(state().mutex);
  stream->context->streams.erase(stream);
}

Stream *pipewright::doubles::makeStream(Context *context, unsigned flags,
                                        int priority) {
  State &all = state();
  const auto stream = std::make_shared<Stream>();
  stream->context = context;
  stream->index = all.nextStream++;
  stream->flags = flags;
  stream->priority = priority;
  if (all.settings.chaosSeed)
    stream->chaos.seed(*all.settings.chaosSeed * 1000 + stream->index);
  context->streams.insert(stream);
  all.handles.insert(stream.get());
  std::thread(serve, stream).detach();
  return stream.get();
}

/// Its thread ends after what it still has to do; until then the GPU is busy.
void pipewright::doubles::closeStream(Stream *stream) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->closing = true;
  stream->changed.notify_all();
}

void pipewright::doubles::push(Stream *stream, Work work) {
  State &all = state();
  if (all.settings.races) {
    std::lock_guard<std::mutex> lock(all.clockMutex);
    work.hostClock = all.hostClock;
  }
  ++all.pendingWork;
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->queue.push_back(std::move(work));
  ++stream->enqueued;
  stream->changed.notify_all();
}

void pipewright::doubles::learn(const VectorClock &clock) {
  State &all = state();
  if (!all.settings.races)
    return;
  std::lock_guard<std::mutex> lock(all.clockMutex);
  all.hostClock.join(clock);
}

void pipewright::doubles::waitFor(Stream *stream) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  const uint64_t until = stream->enqueued;
  stream->changed.wait(lock, [&] { return stream->finished >= until; });
  const VectorClock clock = stream->clock;
  lock.unlock();
  learn(clock);
}

void pipewright::doubles::drain(Context *context) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    streams.assign(context->streams.begin(), context->streams.end());
  }
  for (const std::shared_ptr<Stream> &stream : streams)
    waitFor(stream.get());
}
