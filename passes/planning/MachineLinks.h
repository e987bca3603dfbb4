//===- MachineLinks.h - What is between a machine's ranks -------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H

#include "passes/planning/MachineModel.h"
#include "passes/schedules/Simulator.h"

#include <vector>

namespace pipewright {

/// Makes messages take what they do between ranks of a machine's hosts, and
/// copies what they do between a GPU and its host, in place of what `costs`
/// said of links. The processes of the mesh fill hosts.
void setLinks(schedules::TaskCosts &costs, const MachineModel &machine,
              const runtime::Mesh &mesh);

/// The orders of processes that differ for so many ranks and replicas on a
/// machine, the usual one first: where a schedule moves stashes between ranks
/// (BPipe), pairs, and pipelines otherwise. One alone where all are alike, as
/// on one host.
std::vector<runtime::ProcessMap> processMapsOn(const MachineModel &machine,
                                               int64_t ranks, int64_t replicas,
                                               bool movesStashes);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
