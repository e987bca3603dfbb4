//===- TaskGraphs.h - Tasks that are replayed as CUDA graphs ---*- C++ -*-===//
//
// A task enqueues the same work each time that it stands at the same place of
// a step. So it runs plainly at first, is captured the second time, and from
// then on the driver replays it in one call.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_TASKGRAPHS_H
#define PIPEWRIGHT_RUNTIME_CUDA_TASKGRAPHS_H

#include "runtime/cuda/Driver.h"
#include "runtime/cuda/TaskBody.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipewright::runtime {

class TaskGraphs {
public:
  /// A graph's nodes take memory that no plan knows of, and microseconds each
  /// when it is instantiated, and a step of hundreds of micro-batches has a
  /// graph for each of its tasks. So tasks run plainly once those before them
  /// have so many nodes.
  static constexpr size_t kMostNodes = 1 << 15;

  explicit TaskGraphs(bool enabled, size_t mostNodes = kMostNodes)
      : enabled(enabled), mostNodes(mostNodes) {}
  ~TaskGraphs();
  TaskGraphs(const TaskGraphs &) = delete;
  TaskGraphs &operator=(const TaskGraphs &) = delete;

  /// A step or an evaluation begins: the next task is its first. `plainly`: its
  /// bodies do what cannot be replayed.
  void begin(bool evaluation, bool plainly = false);
  /// Runs the next task on the stream.
  void run(CUstream stream, TaskBody body);
  /// Called by a body: what the host has to do when a graph runs in its place.
  void whenReplayed(std::function<void()> work);

  /// How many tasks are replayed by now.
  int64_t count() const { return instantiated; }

private:
  struct Recorded {
    int64_t runs = 0;
    CUgraphExec graph = nullptr;
    std::vector<std::function<void()>> whenReplayed;
  };

  /// Null when the driver refuses, or the graph has too many nodes; then no
  /// task is captured any more.
  CUgraphExec capture(CUstream stream, TaskBody body);
  void refuse(const std::string &why);

  bool enabled;
  size_t mostNodes, nodes = 0;
  bool plainly = false;
  /// Whose body is being captured.
  Recorded *capturing = nullptr;
  /// What was recorded in steps, and in evaluations, place by place.
  std::vector<Recorded> places[2];
  std::vector<Recorded> *current = &places[0];
  size_t next = 0;
  int64_t instantiated = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_TASKGRAPHS_H
