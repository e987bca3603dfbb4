//===- ProcessName.cpp - What errors call a process -----------------------===//

#include "runtime/core/ProcessName.h"

#include <atomic>

using namespace pipewright::runtime;

/// Of the one run of this process; watchdogs may read it at any time.
static std::atomic<int64_t> replicas{1};

void pipewright::runtime::nameProcessesBy(const Mesh &mesh) {
  replicas = mesh.data;
}

std::string pipewright::runtime::processNumber(int64_t process) {
  const Mesh mesh = {.data = replicas};
  const Place place = mesh.placeOf(process);
  const std::string rank = std::to_string(place.position);
  return mesh.data == 1 ? rank
                        : rank + " of replica " + std::to_string(place.replica);
}

std::string pipewright::runtime::processName(int64_t process) {
  return "rank " + processNumber(process);
}
