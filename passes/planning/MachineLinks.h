//===- MachineLinks.h - What is between a machine's ranks -------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H

#include "passes/planning/MachineModel.h"
#include "passes/schedules/Simulator.h"

namespace pipewright {

/// Makes messages take what they do between ranks of a machine's hosts, and
/// copies what they do between a GPU and its host, in place of what `costs`
/// said of links. `replicas` pipelines of so many ranks stand one behind the
/// other.
void setLinks(schedules::TaskCosts &costs, const MachineModel &machine,
              int64_t ranks, int64_t replicas);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINELINKS_H
