//===- Hosts.cpp - Which ranks are on one host ----------------------------===//
//
// See Hosts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Hosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <utility>

using namespace pipewright;
using namespace pipewright::schedules;

Hosts Hosts::of(int64_t processes, const runtime::Mesh &mesh,
                LinkCosts network) {
  Hosts hosts;
  hosts.network = network;
  if (mesh.size() <= processes)
    return hosts;
  hosts.processes = processes;
  hosts.mesh = mesh;
  return hosts;
}

int64_t Hosts::hostOf(int64_t rank, int64_t replica) const {
  return mesh.processAt({rank, replica}) / processes;
}

/// The sum of (first + i stride) / divisor, rounded down, over i < count, none
/// of which is negative: Euclid's algorithm on stride and divisor, as what is
/// left of them counts points below a line.
static int64_t sumOfQuotients(int64_t count, int64_t divisor, int64_t stride,
                              int64_t first) {
  int64_t sum = 0;
  for (;;) {
    sum += count * (count - 1) / 2 * (stride / divisor) +
           count * (first / divisor);
    stride %= divisor;
    first %= divisor;
    const int64_t last = stride * count + first;
    if (last < divisor)
      return sum;
    count = last / divisor;
    first = last % divisor;
    std::swap(divisor, stride);
  }
}

bool Hosts::areApart(int32_t from, int32_t to) const {
  if (processes == 0)
    return false;
  // Of two ranks one has the lower number in every replica, so that its host is
  // the other's or one in front: sums over replicas are equal where all hosts
  // are. Copies of a rank are `stride` apart.
  const int64_t stride = mesh.processAt({0, 1}) - mesh.processAt({0, 0});
  auto hosts = [&](int64_t rank) {
    return sumOfQuotients(mesh.data, processes, stride,
                          mesh.processAt({rank, 0}));
  };
  return hosts(from) != hosts(to);
}

bool Hosts::replicasCross() const {
  // From replica to replica numbers go up.
  return processes > 0 &&
         llvm::any_of(llvm::seq<int64_t>(0, mesh.pipe), [&](int64_t rank) {
           return hostOf(rank, 0) != hostOf(rank, mesh.data - 1);
         });
}
