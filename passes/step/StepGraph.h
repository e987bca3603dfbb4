//===- StepGraph.h - Everything that ranks do in a step ---------*- C++ -*-===//
//
// Reads a `pipe.step` as plain data: the tasks of each rank in their order, the
// tensors that go from stage to stage, and works, which are what ranks do
// together and whatever else goes from one rank to another. Where works stand
// is not said: they come behind what they take and before what takes them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_STEPGRAPH_H
#define PIPEWRIGHT_PASSES_STEP_STEPGRAPH_H

#include "passes/schedules/Work.h"
#include "passes/step/StepOrder.h"

namespace pipewright::pipe {

/// What a work is in the step: the op of each member, the value that is sent,
/// or the copy to the host or back.
struct WorkOps {
  llvm::SmallVector<GroupOpInterface> parts;
  mlir::Value sent;
  MoveOp move;
};

struct StepGraph {
  schedules::Schedule tasks;
  std::vector<schedules::StageEdge> edges;
  std::vector<schedules::Work> works;
  /// Parallel to `works`.
  std::vector<WorkOps> ops;
  /// By task: what its rank does right before it, other than works.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 1>>
      before;
};

/// Fails, with a diagnostic, on an op of no stage, or that takes from another
/// rank what cannot be sent.
mlir::FailureOr<StepGraph> readStepGraph(StepOp step, const Stages &stages);

/// What a group of a step or of a program does, without members.
schedules::Work describeWork(const Stages &stages, GroupOpInterface op);
/// A message of no edge, without members.
schedules::Work describeWork(const Stages &stages, const Content &content,
                             mlir::Type type);

/// A copy to the host or back, without members.
schedules::Work describeWork(const Stages &stages, MoveOp op);

/// Whom a rank does it with: the ranks of a group, or itself for its replicas.
schedules::RankGroup membersOf(GroupAttr over, int32_t rank);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_STEPGRAPH_H
