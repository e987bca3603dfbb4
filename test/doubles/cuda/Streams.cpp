//===- Streams.cpp - Streams of the driver double -------------------------===//

#include "test/doubles/cuda/Internal.h"

using namespace pipewright::doubles;

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

CUresult pipewright::doubles::enterWith(CUstream handle, Context *&context,
                                        Stream *&stream) {
  const CUresult result = enter(context);
  return result ? result : findStream(handle, context, stream);
}

/// For calls that wait or ask: a capturing stream does neither.
static CUresult enterWithIdleable(CUstream handle, Context *&context,
                                  Stream *&stream) {
  if (CUresult result = enterWith(handle, context, stream))
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
  stream->capture = nullptr;
  closeStream(stream);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWithIdleable(handle, context, stream))
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
  Stream *stream = nullptr;
  if (CUresult result = enterWithIdleable(handle, context, stream))
    return result;
  waitFor(stream);
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned *flags) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int *priority) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *found) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  *found = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

CUresult pipewright::doubles::enqueue(CUstream handle, Operation operation) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  return submit(stream, std::move(operation), CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function,
                                  void *data) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  auto call = [function, data] {
    insideHostFunction() = true;
    function(data);
    insideHostFunction() = false;
  };
  return submit(stream, {"host function", call, {}}, CU_GRAPH_NODE_TYPE_HOST);
}

//===----------------------------------------------------------------------===//
// Words in memory that streams wait for
//===----------------------------------------------------------------------===//

CUresult CUDAAPI cuStreamWriteValue32(CUstream handle, CUdeviceptr address,
                                      cuuint32_t value, unsigned) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
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
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  auto wait = [context, address, value, flags] {
    char *word = translate(context, address, 4, "cuStreamWaitValue32");
    Naps naps;
    while (!isReached(__atomic_load_n(reinterpret_cast<uint32_t *>(word),
                                      __ATOMIC_SEQ_CST),
                      value, flags) &&
           context->error == CUDA_SUCCESS)
      naps.next();
  };
  return submit(stream, {"wait for value", wait, {}},
                CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
}
