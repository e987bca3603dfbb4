//===- Streams.cpp - Streams and events of the driver double --------------===//

#include "test/doubles/cuda/Internal.h"

#include <cstdio>

using namespace pipewright::doubles;

//===----------------------------------------------------------------------===//
// The thread of a stream
//===----------------------------------------------------------------------===//

void Record::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  done = true;
  time = std::chrono::steady_clock::now();
  changed.notify_all();
}

void Record::waitUntilDone() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
}

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

static void serve(Stream *stream) {
  operationContext() = stream->context;
  operationStream() = stream;
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
      runWork(stream, work);
    }
    if (--state().pendingWork == 0)
      releaseQuarantine();
    lock.lock();
    ++stream->finished;
    stream->changed.notify_all();
  }
  lock.unlock();
  delete stream;
}

Stream *pipewright::doubles::makeStream(Context *context, unsigned flags,
                                        int priority) {
  State &all = state();
  Stream *stream = new Stream;
  stream->context = context;
  stream->index = all.nextStream++;
  stream->flags = flags;
  stream->priority = priority;
  if (all.settings.chaosSeed)
    stream->chaos.seed(*all.settings.chaosSeed * 1000 + stream->index);
  context->streams.insert(stream);
  all.handles.insert(stream);
  std::thread(serve, stream).detach();
  return stream;
}

/// Its thread deletes the stream after what it still has to do.
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

/// The host knows now that this has happened.
static void learn(const VectorClock &clock) {
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
  std::vector<Stream *> streams;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    streams.assign(context->streams.begin(), context->streams.end());
  }
  for (Stream *stream : streams)
    waitFor(stream);
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

CUresult pipewright::doubles::findStream(CUstream handle, Context *context,
                                         Stream *&stream) {
  if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    stream = context->nullStream;
    return CUDA_SUCCESS;
  }
  std::lock_guard<std::mutex> lock(state().mutex);
  stream = reinterpret_cast<Stream *>(handle);
  return isLive(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// For calls that wait or ask: a capturing stream does neither.
static CUresult findIdleableStream(CUstream handle, Context *context,
                                   Stream *&stream) {
  if (CUresult result = findStream(handle, context, stream))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!stream->capture)
    return CUDA_SUCCESS;
  stream->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *handle, unsigned flags,
                                            int priority) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (flags & ~unsigned(CU_STREAM_NON_BLOCKING))
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(state().mutex);
  *handle = reinterpret_cast<CUstream>(makeStream(context, flags, priority));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *handle, unsigned flags) {
  return cuStreamCreateWithPriority(handle, flags, 0);
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto *stream = reinterpret_cast<Stream *>(handle);
  if (!all.handles.erase(stream))
    return CUDA_ERROR_INVALID_HANDLE;
  stream->context->streams.erase(stream);
  closeStream(stream);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findIdleableStream(handle, context, stream))
    return result;
  std::unique_lock<std::mutex> lock(stream->mutex);
  if (stream->finished < stream->enqueued)
    return CUDA_ERROR_NOT_READY;
  const VectorClock clock = stream->clock;
  lock.unlock();
  learn(clock);
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findIdleableStream(handle, context, stream))
    return result;
  waitFor(stream);
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned *flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int *priority) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *found) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  *found = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

CUresult pipewright::doubles::enqueue(CUstream handle, Operation operation) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  return submit(stream, std::move(operation), CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function,
                                  void *data) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  auto call = [function, data] {
    insideHostFunction() = true;
    function(data);
    insideHostFunction() = false;
  };
  return submit(stream, {"host function", call, {}}, CU_GRAPH_NODE_TYPE_HOST);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

static CUresult findEvent(CUevent handle, Event *&event) {
  event = reinterpret_cast<Event *>(handle);
  return isLive(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuEventCreate(CUevent *handle, unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  Event *event = new Event;
  event->context = context;
  event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  event->blocking = flags & CU_EVENT_BLOCKING_SYNC;
  state().handles.insert(event);
  *handle = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *event = reinterpret_cast<Event *>(handle);
  if (!state().handles.erase(event))
    return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream streamHandle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(streamHandle, context, stream))
    return result;
  waitForRoom(stream);
  std::lock_guard<std::mutex> lock(state().mutex);
  Event *event = nullptr;
  if (CUresult result = findEvent(handle, event))
    return result;
  if (event->context != stream->context)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    if (stream->capture->invalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return CUDA_SUCCESS;
  }
  auto record = std::make_shared<Record>();
  event->last = record;
  event->capture = nullptr;
  push(stream, {{"record event",
                 [record, stream] {
                   record->clock = stream->clock;
                   record->finish();
                 },
                 {}},
                /*always=*/true,
                {}});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream,
                                        unsigned flags) {
  return flags ? CUDA_ERROR_NOT_SUPPORTED : cuEventRecord(event, stream);
}

/// Within a capture, a wait adds to what the stream's next node depends on;
/// it may bring another stream into the capture.
static CUresult waitCaptured(Stream *stream, const Event *event) {
  const std::shared_ptr<Capture> &from = event->capture;
  if (stream->capture && !from) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (from->ended)
    return CUDA_ERROR_CAPTURED_EVENT;
  if (from->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture && stream->capture != from) {
    stream->capture->invalid = from->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!stream->capture && stream == stream->context->nullStream) {
    from->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  stream->capture = from;
  for (size_t node : event->frontier)
    if (std::find(stream->frontier.begin(), stream->frontier.end(), node) ==
        stream->frontier.end())
      stream->frontier.push_back(node);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream streamHandle, CUevent handle,
                                   unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (flags)
    return CUDA_ERROR_NOT_SUPPORTED;
  Stream *stream = nullptr;
  if (CUresult result = findStream(streamHandle, context, stream))
    return result;
  waitForRoom(stream);
  std::lock_guard<std::mutex> lock(state().mutex);
  Event *event = nullptr;
  if (CUresult result = findEvent(handle, event))
    return result;
  if (stream->capture || event->capture)
    return waitCaptured(stream, event);
  // An event that was never recorded holds nobody up.
  if (!event->last)
    return CUDA_SUCCESS;
  push(stream, {{"wait for event",
                 [record = event->last, stream] {
                   record->waitUntilDone();
                   stream->clock.join(record->clock);
                 },
                 {}},
                /*always=*/true,
                {}});
  return CUDA_SUCCESS;
}

/// The last recording of an event, null if there is none.
static CUresult lastRecord(CUevent handle, std::shared_ptr<Record> &record,
                           const Event *&event) {
  Event *found = nullptr;
  std::lock_guard<std::mutex> lock(state().mutex);
  if (CUresult result = findEvent(handle, found))
    return result;
  if (found->capture) {
    found->capture->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  record = found->last;
  event = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (CUresult result = refuseInCapture())
    return result;
  const Event *event = nullptr;
  std::shared_ptr<Record> record;
  if (CUresult result = lastRecord(handle, record, event))
    return result;
  if (!record)
    return CUDA_SUCCESS;
  {
    std::lock_guard<std::mutex> lock(record->mutex);
    if (!record->done)
      return CUDA_ERROR_NOT_READY;
  }
  learn(record->clock);
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (CUresult result = refuseInCapture())
    return result;
  const Event *event = nullptr;
  std::shared_ptr<Record> record;
  if (CUresult result = lastRecord(handle, record, event))
    return result;
  if (!record)
    return CUDA_SUCCESS;
  record->waitUntilDone();
  learn(record->clock);
  return static_cast<CUresult>(context->error.load());
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::shared_ptr<Record> records[2];
  const CUevent handles[2] = {start, end};
  for (int i = 0; i < 2; ++i) {
    const Event *event = nullptr;
    if (CUresult result = lastRecord(handles[i], records[i], event))
      return result;
    if (!records[i] || !event->timed)
      return CUDA_ERROR_INVALID_HANDLE;
  }
  for (const std::shared_ptr<Record> &record : records) {
    std::lock_guard<std::mutex> lock(record->mutex);
    if (!record->done)
      return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(records[1]->time -
                                                           records[0]->time)
                      .count();
  return CUDA_SUCCESS;
}

// cuda.h of CUDA 13 renames the first to the second; drivers have both.
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start,
                                    CUevent end) {
  return elapsed(milliseconds, start, end);
}
#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
extern "C" PIPEWRIGHT_DOUBLE_API CUresult CUDAAPI
cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
#endif

//===----------------------------------------------------------------------===//
// Words in memory that streams wait for
//===----------------------------------------------------------------------===//

CUresult CUDAAPI cuStreamWriteValue32(CUstream handle, CUdeviceptr address,
                                      cuuint32_t value, unsigned) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  auto write = [context, address, value] {
    char *word = translate(context, address, 4, "cuStreamWriteValue32");
    __atomic_store_n(reinterpret_cast<uint32_t *>(word), value,
                     __ATOMIC_SEQ_CST);
  };
  return submit(stream, {"write value", write, {}},
                CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
}

static bool isReached(uint32_t found, uint32_t value, unsigned flags) {
  switch (flags & 3) {
  case CU_STREAM_WAIT_VALUE_GEQ:
    return static_cast<int32_t>(found - value) >= 0;
  case CU_STREAM_WAIT_VALUE_EQ:
    return found == value;
  case CU_STREAM_WAIT_VALUE_AND:
    return found & value;
  default:
    return ~(found | value);
  }
}

CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address,
                                     cuuint32_t value, unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(handle, context, stream))
    return result;
  auto wait = [context, address, value, flags] {
    char *word = translate(context, address, 4, "cuStreamWaitValue32");
    while (!isReached(__atomic_load_n(reinterpret_cast<uint32_t *>(word),
                                      __ATOMIC_SEQ_CST),
                      value, flags) &&
           context->error == CUDA_SUCCESS)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
  return submit(stream, {"wait for value", wait, {}},
                CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
}
