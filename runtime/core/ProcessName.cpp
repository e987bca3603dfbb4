//===- ProcessName.cpp - What errors call a process -----------------------===//

#include "runtime/core/ProcessName.h"

#include <mutex>

using namespace pipewright::runtime;

/// Of the one run of this process; watchdogs may read it at any time.
static Mesh meshOfRun;
static std::mutex mutex;

void pipewright::runtime::nameProcessesBy(const Mesh &mesh) {
  const std::lock_guard lock(mutex);
  meshOfRun = mesh;
}

std::string pipewright::runtime::processNumber(int64_t process) {
  const std::unique_lock lock(mutex);
  const Mesh mesh = meshOfRun;
  const Place place = mesh.placeOf(process);
  const std::string rank = std::to_string(place.position);
  return mesh.data == 1 ? rank
                        : rank + " of replica " + std::to_string(place.replica);
}

std::string pipewright::runtime::processName(int64_t process) {
  return "rank " + processNumber(process);
}
