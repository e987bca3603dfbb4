//===- MachineLinks.h - What is between a machine's ranks -------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H

#include "passes/planning/MachineModel.h"
#include "passes/schedules/Simulator.h"

namespace pipewright {

/// Makes messages take what they do between ranks of a machine's hosts, and
/// copies what they do between a GPU and its host, in place of what `costs`
/// said of links. The processes of the mesh fill hosts.
void setLinks(schedules::TaskCosts &costs, const MachineModel &machine,
              const runtime::Mesh &mesh);

/// Whether it matters on a machine in which order the processes of so many
/// ranks and replicas are numbered: there are several hosts, or ranks of
/// several kinds. Ranks move stashes to others under BPipe.
bool dependsOnProcessMap(const MachineModel &machine, int64_t ranks,
                         int64_t replicas, bool movesStashes);

/// The order unless somebody chooses one: for moves in pairs, these; otherwise,
/// where it matters, pipelines on as few hosts as they can be.
runtime::ProcessMap usualProcessMap(const MachineModel &machine, int64_t ranks,
                                    int64_t replicas, bool movesStashes);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
