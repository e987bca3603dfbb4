//===- TaskGraphs.cpp - Tasks that are replayed as CUDA graphs ------------===//

#include "runtime/cuda/TaskGraphs.h"
#include "runtime/core/Text.h"

#include <cstdio>
#include <exception>
#include <mutex>

using namespace pipewright::runtime;

TaskGraphs::~TaskGraphs() {
  for (const std::vector<Recorded> &tasks : places)
    for (const Recorded &task : tasks)
      if (task.graph)
        cudaDriver().cuGraphExecDestroy(task.graph);
}

void TaskGraphs::begin(bool evaluation, bool runsPlainly) {
  plainly = runsPlainly;
  current = &places[evaluation];
  next = 0;
}

void TaskGraphs::run(CUstream stream, TaskBody body) {
  if (plainly)
    return body();
  if (next == current->size())
    current->emplace_back();
  Recorded &task = (*current)[next++];
  // The first run also is when libraries load what they need lazily, which
  // cannot be captured.
  if (enabled && task.runs++ == 1) {
    capturing = &task;
    task.graph = capture(stream, body);
    capturing = nullptr;
    instantiated += task.graph != nullptr;
  } else if (task.graph) {
    for (const std::function<void()> &work : task.whenReplayed)
      work();
  }
  if (task.graph)
    PIPEWRIGHT_CUDA(cuGraphLaunch(task.graph, stream));
  else
    body();
}

void TaskGraphs::whenReplayed(std::function<void()> work) {
  if (capturing)
    capturing->whenReplayed.push_back(std::move(work));
}

CUgraphExec TaskGraphs::capture(CUstream stream, TaskBody body) {
  const Driver &driver = cudaDriver();
  // Other ranks are other threads: what they do meanwhile is allowed.
  PIPEWRIGHT_CUDA(
      cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::string refused;
  auto isNot = [&](const std::string &why) {
    refused = "one of them could not be captured: " + why;
  };
  try {
    body();
  } catch (const std::exception &error) {
    isNot(error.what());
  }
  CUgraph graph = nullptr;
  CUresult result = driver.cuStreamEndCapture(stream, &graph);
  CUgraphExec executable = nullptr;
  size_t more = 0;
  if (result == CUDA_SUCCESS && refused.empty())
    result = driver.cuGraphGetNodes(graph, nullptr, &more);
  if (nodes + more > mostNodes)
    refused = "those of a rank have more than " + std::to_string(mostNodes) +
              " nodes";
  nodes += more;
  if (result == CUDA_SUCCESS && refused.empty())
    result = driver.cuGraphInstantiate(&executable, graph, 0);
  if (executable)
    result = driver.cuGraphUpload(executable, stream);
  if (graph)
    driver.cuGraphDestroy(graph);
  if (refused.empty() && result != CUDA_SUCCESS)
    isNot(cudaErrorText(result));
  if (refused.empty())
    return executable;
  refuse(refused);
  return nullptr;
}

void TaskGraphs::refuse(const std::string &why) {
  enabled = false;
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr,
                 "note: tasks run without CUDA graphs from here on, %s\n",
                 printable(why).c_str());
  });
}
