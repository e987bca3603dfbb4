//===- Hosts.h - Which ranks are on one host --------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_HOSTS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_HOSTS_H

#include "runtime/core/Mesh.h"

#include <cstdint>
#include <limits>

namespace pipewright::schedules {

struct LinkCosts {
  /// Seconds between the last byte leaving and its arrival.
  double latency = 0;
  /// Bytes per second of one directed link.
  double bandwidth = std::numeric_limits<double>::infinity();
};

/// Where ranks are: hosts are filled with processes in the order of their
/// numbers.
struct Hosts {
  /// Processes of one; 0: all are on one host.
  int64_t processes = 0;
  runtime::Mesh mesh;
  /// Between ranks of two hosts.
  LinkCosts network;

  /// None where all of the mesh are on one host.
  static Hosts of(int64_t processes, const runtime::Mesh &mesh,
                  LinkCosts network);
  /// Whether two ranks of any pipeline are on two hosts.
  bool areApart(int32_t from, int32_t to) const;
  /// Whether the copies of any rank in all pipelines are on several hosts.
  bool replicasCross() const;

private:
  int64_t hostOf(int64_t rank, int64_t replica) const;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_HOSTS_H
