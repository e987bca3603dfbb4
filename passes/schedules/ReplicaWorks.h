//===- ReplicaWorks.h - What replicas do together ---------------*- C++ -*-===//
//
// The collectives of replicas in a step without a model: all stages have as
// many weights, none of which another stage has, too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_REPLICAWORKS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_REPLICAWORKS_H

#include "passes/schedules/Schedule.h"
#include "passes/schedules/Work.h"

#include "llvm/Support/Error.h"

namespace pipewright::schedules {

struct TaskCosts;

/// What replicas keep a part each of, as `--zero` of `pipewright compile` says.
struct Sharding {
  /// At least 2.
  int64_t replicas = 2;
  /// 0 to 3.
  int64_t level = 0;
  /// Of how many stages a rank has room for gradients, and for whole weights.
  int64_t ranges = 2;
  /// Of a rank's share of the weights: how long one exchange takes in which
  /// each replica sends a part to each other, as in a reduce-scatter or an
  /// all-gather. An all-reduce is two.
  double exchangeSeconds = 0;
  /// Bytes of a rank's share of the weights, where the costs say how fast links
  /// are and no such time is given.
  int64_t weightBytes = 0;
};

/// The works of a step that trains: sums of gradients before their updates, and
/// earlier where stages share a range; gathers of new weights behind these, or
/// before the tasks that read them. Updates move to where `pipewright compile`
/// has them: those that make room for another stage, before its tasks. Fails
/// with two copies of the model, on updates with stale weights that are
/// sharded, and where the schedule does not train.
llvm::Expected<std::vector<Work>> addReplicaWorks(Schedule &schedule,
                                                  const Sharding &sharding);

/// Makes the works take what `sharding` says: each pipeline has hosts of its
/// own. Fails where costs say already which hosts there are.
llvm::Error setExchangeTime(TaskCosts &costs, const Schedule &schedule,
                            const Sharding &sharding);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_REPLICAWORKS_H
