//===- Schedule.cpp - Where stages go and in which order tasks run --------===//
//
// Asks a policy of passes/schedules for placement and order and writes them
// into the IR: the rank of each stage, backward tasks in halves where the
// policy has them so, and the block order of the steps.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/scheduled/MoveStashes.h"
#include "passes/pipe/unrolled/SplitTasks.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/HostMoves.h"
#include "passes/schedules/ListScheduler.h"
#include "passes/schedules/files/FilePolicy.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESCHEDULE
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// Evaluation on the ranks of a schedule, on the first copy of the model. Each
/// rank prefers its deepest stage, so that few results wait for the next one;
/// stage by stage, those of all micro-batches would.
static llvm::Expected<schedules::Schedule>
evaluationOf(const schedules::Schedule &schedule, const Stages &stages) {
  schedules::Schedule evaluation;
  evaluation.ranks = schedule.ranks;
  evaluation.stages = schedule.stages / schedule.copies;
  evaluation.microBatches = schedule.microBatches;
  evaluation.forwardOnly = true;
  evaluation.rankOfStage.assign(schedule.rankOfStage.begin(),
                                schedule.rankOfStage.begin() +
                                    evaluation.stages);
  evaluation.order.resize(schedule.ranks);
  std::vector<schedules::StageEdge> edges = stages.edges(StepMode::evaluate);
  schedules::ListOptions options;
  options.edges = edges;
  if (llvm::Error error = schedules::orderByList(evaluation, options))
    return std::move(error);
  return evaluation;
}

/// Writes into the tasks of each stage which version of its weights they read.
static void setVersions(StepOp step, const Stages &stages,
                        const schedules::Schedule &schedule) {
  Builder builder(step.getContext());
  std::vector<std::vector<int32_t>> versions;
  for (int32_t stage = 0; stage < stages.size(); ++stage)
    versions.push_back(schedules::weightVersions(schedule, stage));
  for (auto task : step.getBody()->getOps<TaskOp>()) {
    int32_t stage = stages.numberOf(task.getStage());
    task.removeVersionAttr();
    if (schedule.weightRule != schedules::WeightRule::Synchronous &&
        task.getMicroBatch() && stages.hasUpdate(stage))
      task.setVersion(versions[stage][*task.getMicroBatch()]);
  }
}

/// Moves the ops of `step` so that each rank's tasks stand in its order, all
/// ranks advancing together. What belongs to tied weights stays at the end, and
/// so do updates, unless the schedule has its own places for several: in front
/// of a single one all ranks sum their gradients.
static LogicalResult orderStep(StepOp step, const Stages &stages,
                               const schedules::Schedule &schedule) {
  TaskIndex index;
  SmallVector<Operation *> rest;
  int64_t tasks = 0;
  bool ordersUpdates =
      schedule.weightRule != schedules::WeightRule::Synchronous &&
      schedule.updates > 1;
  for (Operation &op : *step.getBody()) {
    auto task = dyn_cast<TaskOp>(op);
    if (task && (ordersUpdates || task.getKind() != TaskKind::update)) {
      index.add(stages, task);
      ++tasks;
    } else if (!isa<InputOp>(op)) {
      rest.push_back(&op);
    }
  }
  std::vector<std::vector<TaskOp>> queues(schedule.ranks);
  int64_t queued = 0;
  for (auto [queue, order] : llvm::zip(queues, schedule.order))
    for (auto [position, task] : llvm::enumerate(order))
      if (TaskOp op = index.lookup(task);
          op && (ordersUpdates || task.kind != schedules::TaskKind::Update)) {
        // Where the model has no use for one of a pair, there is none.
        op.setOverlapsNext(task.overlapsNext &&
                           index.lookup(order[position + 1]));
        queue.push_back(op);
        ++queued;
      }
  if (queued != tasks)
    return step.emitOpError("has ") << tasks << " tasks, but the schedule "
                                    << "orders " << queued << " of them";

  llvm::DenseSet<Operation *> placed;
  Block *body = step.getBody();
  auto isReady = [&](TaskOp task) {
    return llvm::all_of(task.getOperands(), [&](Value operand) {
      Operation *definition = operand.getDefiningOp();
      return isa<InputOp>(definition) || placed.contains(definition);
    });
  };
  std::vector<size_t> next(schedule.ranks);
  for (int64_t done = 0; done < tasks;) {
    int64_t before = done;
    // One task of every rank at a time: the text reads like the timetable.
    SmallVector<TaskOp> row;
    for (auto [queue, position] : llvm::zip(queues, next))
      if (position < queue.size() && isReady(queue[position]))
        row.push_back(queue[position++]);
    for (TaskOp task : row) {
      for (Value operand : task.getOperands())
        if (Operation *input = operand.getDefiningOp();
            isa<InputOp>(input) && placed.insert(input).second)
          input->moveBefore(body, body->end());
      task->moveBefore(body, body->end());
      placed.insert(task);
      ++done;
    }
    if (done != before)
      continue;
    auto stuck =
        llvm::find_if(llvm::seq<size_t>(0, queues.size()),
                      [&](size_t r) { return next[r] < queues[r].size(); });
    return queues[*stuck][next[*stuck]].emitOpError(
        "can never run in the order of this schedule: what it needs comes "
        "later");
  }
  for (Operation *op : rest)
    op->moveBefore(body, body->end());
  return success();
}

namespace {

class Schedule : public pipe::impl::PipeScheduleBase<Schedule> {
public:
  using PipeScheduleBase::PipeScheduleBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    FailureOr<int64_t> microBatches = microBatchesOf(module);
    if (failed(stages) || failed(microBatches))
      return signalPassFailure();
    if (!module.getOps<RankOp>().empty()) {
      module.emitError("has transfers already, so its order is fixed");
      return signalPassFailure();
    }
    readDefaults(module);

    llvm::Expected<schedules::PolicyChoice> chosen = choose();
    if (!chosen)
      return fail(chosen.takeError());
    schedules::TaskCosts costs = stages->costs(StepMode::train);
    std::vector<schedules::StageEdge> edges = stages->edges(StepMode::train);
    schedules::ScheduleOptions options{ranks, stages->size() / stages->copies(),
                                       *microBatches};
    options.costs = &costs;
    options.edges = edges;
    if (stages->ranksDiffer())
      options.costsAt = [&](ArrayRef<int32_t> rankOfStage) {
        return stages->costs(StepMode::train, rankOfStage);
      };
    llvm::Expected<double> share = schedules::parseOffload(offload);
    if (!share)
      return fail(llvm::createStringError("offload " +
                                          llvm::toString(share.takeError())));
    options.offload = *share;
    options = chosen->with(options);
    llvm::Expected<schedules::Schedule> schedule = (*chosen)->build(options);
    if (!schedule)
      return fail(schedule.takeError());
    if (failed(verifyFits(*schedule, *stages)))
      return signalPassFailure();
    if (!schedule->origin.empty())
      module.emitRemark("schedule '")
          << policy << "' chose: " << schedule->origin;
    if (llvm::Error error = schedules::checkSchedule(*schedule, edges))
      return fail(std::move(error));
    bool asScheduled = !schedules::sumsAscending(*schedule);

    setAttributes(*schedule, *stages, asScheduled);
    if (failed(sizeWindows(*schedule, costs, *stages)))
      return signalPassFailure();
    for (StepOp step : module.getOps<StepOp>())
      if (failed(writeOrder(step, *stages, *schedule, asScheduled)))
        return signalPassFailure();
  }

private:
  /// Options that are not given come from the module.
  void readDefaults(ModuleOp module) {
    ProgramFields program = programOf(module);
    if (policy.empty())
      policy = program.schedule ? program.schedule.str() : "1f1b";
    if (ranks == 0)
      ranks = program.ranks.value_or(1);
  }

  llvm::Expected<schedules::PolicyChoice> choose() {
    llvm::Expected<schedules::PolicyChoice> chosen =
        schedules::chooseSchedule(policy);
    if (!chosen)
      return chosen;
    auto refuse = [&](const char *why) {
      return llvm::createStringError("schedule '" + policy + "' " + why);
    };
    if (!(*chosen)->trains())
      return refuse("only evaluates, but a program trains");
    return chosen;
  }

  /// Whether the stages were prepared for this schedule.
  LogicalResult verifyFits(const schedules::Schedule &schedule,
                           const Stages &stages) {
    ModuleOp module = getOperation();
    if (schedule.copies != stages.copies())
      return module.emitError("schedule '")
             << policy << "' has " << schedule.copies
             << (schedule.copies == 1 ? " copy" : " copies")
             << " of the model, but the module has " << stages.copies()
             << (schedule.copies == 1 ? "; leave pipe-mirror-stages out"
                                      : "; run pipe-mirror-stages first");
    if (schedule.updates != programOf(module).updates)
      return module.emitError("schedule '")
             << policy << "' has " << schedule.updates
             << (schedule.updates == 1 ? " update" : " updates")
             << " in a step, but the module has 'updates' = "
             << programOf(module).updates;
    if (schedule.weightRule != schedules::WeightRule::Synchronous)
      return stages.refuseTiedWeights();
    return success();
  }

  void setAttributes(const schedules::Schedule &schedule, const Stages &stages,
                     bool asScheduled) {
    ModuleOp module = getOperation();
    Builder builder(module.getContext());
    changeProgram(module, [&](ProgramFields &program) {
      program.schedule = builder.getStringAttr(policy);
      program.ranks = ranks;
      program.sumsInScheduleOrder = asScheduled;
    });
    for (int32_t stage = 0; stage < stages.size(); ++stage)
      stages[stage].setRank(schedule.rankOfStage[stage]);
  }

  /// Writes the sizes of windows into stages that keep some stashes.
  LogicalResult sizeWindows(const schedules::Schedule &schedule,
                            const schedules::TaskCosts &costs,
                            const Stages &stages) {
    int64_t count = 0, size = 0;
    for (auto [stage, window] :
         llvm::enumerate(schedules::sizedWindows(schedule, costs))) {
      StageOp op = stages[static_cast<int32_t>(stage)];
      if (std::optional<WindowAttr> keeps = op.getKeeps()) {
        op.setKeepsAttr(WindowAttr::get(&getContext(), keeps->getEnd(),
                                        window.count, window.size));
        count = std::max(count, window.count);
        size = std::max(size, window.size);
      }
    }
    if (count <= size)
      return success();
    return getOperation().emitError("cannot keep the stashes of ")
           << count << " micro-batches at a time: no stage has more than "
           << size << " in flight under schedule '" << policy
           << "'; use --remat none, or window:N with a smaller N";
  }

  static LogicalResult writeOrder(StepOp step, const Stages &stages,
                                  const schedules::Schedule &schedule,
                                  bool asScheduled) {
    if (step.getMode() == StepMode::evaluate) {
      llvm::Expected<schedules::Schedule> evaluation =
          evaluationOf(schedule, stages);
      if (!evaluation)
        return step.emitOpError(llvm::toString(evaluation.takeError()));
      return orderStep(step, stages, *evaluation);
    }
    keepStashes(step);
    placeRecomputes(step, stages, schedule);
    if (failed(splitTasks(step, stages, schedule)))
      return failure();
    // Several updates cut the chain where it is to be cut, in order.
    if (schedule.updates == 1)
      threadGradients(step, stages, schedule, asScheduled);
    setVersions(step, stages, schedule);
    if (failed(orderStep(step, stages, schedule)))
      return failure();
    return moveStashes(step, stages, schedule);
  }

  void fail(llvm::Error error) {
    getOperation().emitError(llvm::toString(std::move(error)));
    signalPassFailure();
  }
};

} // namespace
