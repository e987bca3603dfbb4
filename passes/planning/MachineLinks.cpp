//===- MachineLinks.cpp - What is between a machine's ranks ---------------===//
//
// See MachineLinks.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineLinks.h"

#include <algorithm>

void pipewright::setLinks(schedules::TaskCosts &costs,
                          const MachineModel &machine, int64_t ranks,
                          int64_t replicas) {
  costs.links.clear();
  costs.linkLatency = machine.linkLatency;
  costs.linkBandwidth = machine.linkBandwidth;
  costs.hostLink = {0, machine.hostBandwidth};
  costs.hostMemory = machine.hostMemory;
  costs.hosts = schedules::Hosts::of(
      static_cast<int64_t>(std::clamp(machine.hostRanks, 1.0, 1048576.0)),
      ranks, replicas, {machine.networkLatency, machine.networkBandwidth});
}
