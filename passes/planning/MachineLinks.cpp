//===- MachineLinks.cpp - What is between a machine's ranks ---------------===//
//
// See MachineLinks.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineLinks.h"

#include <algorithm>

using namespace pipewright;

/// As machines have it, which may say more than there are.
static int64_t processesOfHost(const MachineModel &machine) {
  return static_cast<int64_t>(std::clamp(machine.hostRanks, 1.0, 1048576.0));
}

void pipewright::setLinks(schedules::TaskCosts &costs,
                          const MachineModel &machine,
                          const runtime::Mesh &mesh) {
  costs.links.clear();
  costs.linkLatency = machine.linkLatency;
  costs.linkBandwidth = machine.linkBandwidth;
  costs.hostLink = {0, machine.hostBandwidth};
  costs.hostMemory = machine.hostMemory;
  costs.hosts =
      schedules::Hosts::of(processesOfHost(machine), mesh,
                           {machine.networkLatency, machine.networkBandwidth});
}

std::vector<runtime::ProcessMap>
pipewright::processMapsOn(const MachineModel &machine, int64_t ranks,
                          int64_t replicas, bool movesStashes) {
  using enum runtime::ProcessMap;
  if (ranks == 1 ||
      (!machine.isUneven() && ranks * replicas <= processesOfHost(machine)))
    return {Replicas};
  std::vector<runtime::ProcessMap> maps = {Replicas};
  if (replicas > 1)
    maps.insert(maps.begin(), Pipelines);
  if (ranks > 2)
    maps.insert(movesStashes ? maps.begin() : maps.end(), Pairs);
  return maps;
}
