//===- Events.cpp - Events of the driver double ---------------------------===//

#include "test/doubles/cuda/Ipc.h"

#include <algorithm>

using namespace pipewright::doubles;

namespace {

/// Of an event within this process.
class LocalRecord final : public Record {
public:
  void finish(const VectorClock &clock) override {
    std::lock_guard<std::mutex> lock(mutex);
    known = clock;
    end = std::chrono::steady_clock::now();
    done = true;
    changed.notify_all();
  }
  void waitUntilDone() override {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  bool isDone() override {
    std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
  VectorClock clock() override {
    std::lock_guard<std::mutex> lock(mutex);
    return known;
  }
  std::chrono::steady_clock::time_point time() override {
    std::lock_guard<std::mutex> lock(mutex);
    return end;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::chrono::steady_clock::time_point end;
  VectorClock known;
};

} // namespace

/// The event's last recording at the time of the call; null: there is none.
static std::shared_ptr<Record> lastOf(const Event &event) {
  return event.shared ? lastOfShared(event.shared) : event.last;
}

static std::shared_ptr<Record> recordAgain(Event &event) {
  if (event.shared)
    return recordShared(event.shared);
  event.last = std::make_shared<LocalRecord>();
  return event.last;
}

static CUresult findEvent(CUevent handle, Event *&event) {
  event = reinterpret_cast<Event *>(handle);
  return isLive(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuEventCreate(CUevent *handle, unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  const bool timed = !(flags & CU_EVENT_DISABLE_TIMING);
  const bool isShared = flags & CU_EVENT_INTERPROCESS;
  if (isShared && timed)
    return CUDA_ERROR_INVALID_VALUE;
  int64_t place = -1;
  std::shared_ptr<SharedEvent> shared;
  if (isShared && !(shared = makeSharedEvent(context->device->ordinal, place)))
    return CUDA_ERROR_NOT_SUPPORTED;
  std::lock_guard<std::mutex> lock(state().mutex);
  Event *event = new Event;
  event->context = context;
  event->timed = timed;
  event->blocking = flags & CU_EVENT_BLOCKING_SYNC;
  event->shared = std::move(shared);
  event->place = place;
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
  if (event->place >= 0)
    endShared(event->place);
  delete event;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream streamHandle) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(streamHandle, context, stream))
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
    if (event->shared)
      return CUDA_ERROR_NOT_SUPPORTED;
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return CUDA_SUCCESS;
  }
  const std::shared_ptr<Record> record = recordAgain(*event);
  event->capture = nullptr;
  push(stream, {{"record event",
                 [record, stream] { record->finish(stream->clock); },
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
  const std::shared_ptr<Record> record = lastOf(*event);
  if (!record)
    return CUDA_SUCCESS;
  push(stream, {{"wait for event",
                 [record, stream] {
                   record->waitUntilDone();
                   stream->clock.join(record->clock());
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
  record = lastOf(*found);
  event = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  const Event *event = nullptr;
  std::shared_ptr<Record> record;
  if (CUresult result = lastRecord(handle, record, event))
    return result;
  if (!record)
    return CUDA_SUCCESS;
  if (!record->isDone())
    return CUDA_ERROR_NOT_READY;
  learn(record->clock());
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  const Event *event = nullptr;
  std::shared_ptr<Record> record;
  if (CUresult result = lastRecord(handle, record, event))
    return result;
  if (!record)
    return CUDA_SUCCESS;
  record->waitUntilDone();
  learn(record->clock());
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
  for (const std::shared_ptr<Record> &record : records)
    if (!record->isDone())
      return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(records[1]->time() -
                                                           records[0]->time())
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
