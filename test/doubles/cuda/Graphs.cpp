//===- Graphs.cpp - Stream capture and graphs of the driver double --------===//

#include "test/doubles/cuda/Internal.h"

using namespace pipewright::doubles;

static CUresult refuseInCapture() {
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  CUresult result = CUDA_SUCCESS;
  std::erase_if(all.captures, [](const std::weak_ptr<Capture> &entry) {
    const std::shared_ptr<Capture> capture = entry.lock();
    return !capture || capture->ended;
  });
  for (const std::weak_ptr<Capture> &entry : all.captures) {
    const std::shared_ptr<Capture> capture = entry.lock();
    const bool forbids =
        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
         capture->thread == std::this_thread::get_id());
    if (!forbids)
      continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult pipewright::doubles::enterOutsideCapture(Context *&context) {
  const CUresult result = enter(context);
  return result ? result : refuseInCapture();
}

/// A stream that waits for the legacy stream, as all do that were made without
/// CU_STREAM_NON_BLOCKING, must not capture while that gets work.
static bool breaksCapture(const Stream *stream) {
  if (stream != stream->context->nullStream)
    return false;
  for (const std::shared_ptr<Stream> &other : stream->context->streams)
    if (other.get() != stream && other->capture && other->flags == 0) {
      other->capture->invalid = true;
      return true;
    }
  return false;
}

CUresult pipewright::doubles::submit(Stream *stream, Operation operation,
                                     CUgraphNodeType type) {
  waitForRoom(stream);
  std::lock_guard<std::mutex> lock(state().mutex);
  if (breaksCapture(stream))
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (!stream->capture) {
    push(stream, {std::move(operation), type == CU_GRAPH_NODE_TYPE_HOST, {}});
    return CUDA_SUCCESS;
  }
  if (stream->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode> &nodes = stream->capture->graph->nodes;
  nodes.push_back({std::move(operation), type, stream->frontier});
  stream->frontier = {nodes.size() - 1};
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle,
                                      CUstreamCaptureMode mode) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  if (stream == context->nullStream)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = all.nextCapture++;
  stream->capture = capture;
  stream->frontier.clear();
  all.captures.push_back(capture);
  return CUDA_SUCCESS;
}

/// Whether all nodes come before the last ones of the origin.
static bool isJoined(const Graph &graph, const std::vector<size_t> &frontier) {
  std::vector<bool> reached(graph.nodes.size());
  for (size_t node : frontier)
    reached[node] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (reached[i])
      for (size_t before : graph.nodes[i].after)
        reached[before] = true;
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const bool isWrongThread = capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                             capture->thread != std::this_thread::get_id();
  const bool joined = isJoined(*capture->graph, stream->frontier);
  capture->ended = true;
  for (const std::shared_ptr<Stream> &other : context->streams)
    if (other->capture == capture) {
      other->capture = nullptr;
      other->frontier.clear();
    }
  // That is the end of it all the same.
  if (isWrongThread)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined)
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  Graph *made = capture->graph.release();
  state().handles.insert(made);
  *graph = reinterpret_cast<CUgraph>(made);
  return CUDA_SUCCESS;
}

static CUstreamCaptureStatus statusOf(const Stream *stream) {
  if (!stream->capture)
    return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle,
                                     CUstreamCaptureStatus *status) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  *status = statusOf(stream);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  static thread_local CUstreamCaptureMode current =
      CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode *, size_t *count) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto *graph = reinterpret_cast<const Graph *>(handle);
  if (!isLive(graph))
    return CUDA_ERROR_INVALID_VALUE;
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto *graph = reinterpret_cast<const Graph *>(handle);
  if (!state().handles.erase(graph))
    return CUDA_ERROR_INVALID_VALUE;
  delete graph;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *exec, CUgraph handle,
                                    unsigned long long) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  mayWaitForGpu(context);
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto *graph = reinterpret_cast<const Graph *>(handle);
  if (!isLive(graph))
    return CUDA_ERROR_INVALID_VALUE;
  auto *made = new GraphExec{std::make_shared<const Graph>(*graph)};
  state().handles.insert(made);
  *exec = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto *exec = reinterpret_cast<const GraphExec *>(handle);
  if (!state().handles.erase(exec))
    return CUDA_ERROR_INVALID_VALUE;
  delete exec;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  mayLoadKernel(context, handle);
  return CUDA_SUCCESS;
}

/// The nodes in the order of their capture, which is one that the graph
/// allows. An error names the node.
static void runNode(const GraphNode &node) {
  try {
    noteAccesses(node.operation);
    node.operation.run();
  } catch (const DeviceFault &fault) {
    throw DeviceFault(fault.code, node.operation.name + ": " + fault.what());
  } catch (const pipewright::ptx::Fault &fault) {
    throw DeviceFault(toResult(fault),
                      node.operation.name + ": " + fault.what());
  }
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(streamHandle, context, stream))
    return result;
  std::shared_ptr<const Graph> graph;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    const auto *exec = reinterpret_cast<const GraphExec *>(handle);
    if (!isLive(exec))
      return CUDA_ERROR_INVALID_VALUE;
    graph = exec->graph;
  }
  mayLoadKernel(context, handle);
  auto run = [graph] {
    for (const GraphNode &node : graph->nodes)
      runNode(node);
  };
  return submit(
      stream,
      {"graph of " + std::to_string(graph->nodes.size()) + " nodes", run, {}},
      CU_GRAPH_NODE_TYPE_GRAPH);
}
