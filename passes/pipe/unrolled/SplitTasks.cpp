//===- SplitTasks.cpp - Tasks of halves in place of backwards -------------===//
//
// See SplitTasks.h. What a half reads, the whole read: operands are looked up
// in the task that is replaced.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/unrolled/SplitTasks.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// Replaces one backward task.
class TaskSplitter {
public:
  TaskSplitter(const Stages &stages, TaskOp whole)
      : stage(stages[stages.numberOf(whole.getStage())]), whole(whole),
        body(stage.gradientBodyOf(TaskKind::backward)), builder(whole) {}

  void split();

private:
  /// The operand of the whole that stands for `index` in one of its lists.
  Value operandFor(ArrayRef<int64_t> list, int64_t index, size_t first) const {
    return whole.getOperand(first + (llvm::find(list, index) - list.begin()));
  }
  SmallVector<Value> operandsOf(GradientBodyInterface half) const;
  TaskOp createTask(TaskKind kind, ValueRange operands, TypeRange results) {
    return TaskOp::create(builder, whole.getLoc(), results,
                          TaskKindAttr::get(builder.getContext(), kind),
                          whole.getStageAttr(), whole.getMicroBatchAttr(),
                          operands, /*buffers=*/ArrayAttr());
  }

  /// Handles; their accessors are not const.
  mutable StageOp stage;
  mutable TaskOp whole;
  mutable GradientBodyInterface body;
  OpBuilder builder;
};

} // namespace

/// What a half shares with the whole: all but handover and sum.
SmallVector<Value> TaskSplitter::operandsOf(GradientBodyInterface half) const {
  ArrayRef<int64_t> inputs = body.getInputs(), outputs = body.getOutputs();
  SmallVector<Value> operands;
  size_t first = inputs.size() + outputs.size();
  auto addRanges = [&](TaskKind giver) {
    const SmallVector<Type> all = stage.getRangesReadBy(body, giver);
    for (Type type : stage.getRangesReadBy(half, giver))
      operands.push_back(
          whole.getOperand(first + (llvm::find(all, type) - all.begin())));
    first += all.size();
  };
  for (int64_t index : half.getInputs())
    operands.push_back(operandFor(inputs, index, 0));
  for (int64_t index : half.getOutputs())
    operands.push_back(operandFor(outputs, index, inputs.size()));
  addRanges(TaskKind::forward);
  for (int64_t index : half.getGradientsOf())
    operands.push_back(operandFor(body.getGradientsOf(), index, first));
  first += body.getGradientsOf().size();
  addRanges(TaskKind::recompute);
  return operands;
}

void TaskSplitter::split() {
  GradientBodyInterface input = stage.gradientBodyOf(TaskKind::input_gradient);
  GradientBodyInterface weight =
      stage.gradientBodyOf(TaskKind::weight_gradient);
  size_t numGradients = body.getInputGradients().size();
  SmallVector<Type> types(whole->getResultTypes());

  SmallVector<Type> inputTypes(types.begin(), types.begin() + numGradients);
  if (weight.takesHandover())
    inputTypes.push_back(
        HandoverType::get(builder.getContext(), whole.getStageAttr()));
  TaskOp first =
      createTask(TaskKind::input_gradient, operandsOf(input), inputTypes);

  SmallVector<Value> operands = operandsOf(weight);
  if (weight.takesHandover())
    operands.push_back(first.getResults().back());
  if (Value summed = whole.getSummed())
    operands.push_back(summed);
  TaskOp second = createTask(TaskKind::weight_gradient, operands,
                             ArrayRef(types).drop_front(numGradients));

  for (auto [number, result] : llvm::enumerate(whole.getResults()))
    result.replaceAllUsesWith(number < numGradients
                                  ? first.getResult(number)
                                  : second.getResult(number - numGradients));
  whole.erase();
}

/// A task that makes the stash of a forward again, for all that read it.
static void addRecompute(TaskOp forward, StageOp stage) {
  SmallVector<Type> types;
  for (const StashRange &range : stage.getRanges(TaskKind::forward))
    types.push_back(range.type);
  SmallVector<Value> operands;
  for (int64_t input : stage.getRecompute().getInputs())
    operands.push_back(forward.getOperand(input));
  OpBuilder builder(forward);
  builder.setInsertionPointAfter(forward);
  auto task = TaskOp::create(
      builder, forward.getLoc(), types,
      TaskKindAttr::get(builder.getContext(), TaskKind::recompute),
      forward.getStageAttr(), forward.getMicroBatchAttr(), operands,
      /*buffers=*/ArrayAttr());
  for (Value made : task.getResults())
    forward.getStash(made.getType()).replaceAllUsesWith(made);
}

void pipewright::pipe::placeRecomputes(StepOp step, const Stages &stages,
                                       const schedules::Schedule &schedule) {
  TaskIndex index;
  SmallVector<TaskOp> forwards;
  for (auto task : step.getBody()->getOps<TaskOp>()) {
    index.add(stages, task);
    if (task.getKind() == TaskKind::forward)
      forwards.push_back(task);
  }
  for (TaskOp forward : forwards) {
    const int32_t stage = stages.numberOf(forward.getStageAttr());
    const auto microBatch = static_cast<int32_t>(*forward.getMicroBatch());
    if (!stages[stage].getKeeps())
      continue;
    TaskOp task =
        index.lookup(schedules::TaskKind::Recompute, stage, microBatch);
    const bool isWanted = schedule.recomputes(stage, microBatch);
    if (isWanted && !task)
      addRecompute(forward, stages[stage]);
    if (isWanted || !task)
      continue;
    for (Value made : task.getResults())
      made.replaceAllUsesWith(forward.getStash(made.getType()));
    task.erase();
  }
}

LogicalResult
pipewright::pipe::splitTasks(StepOp step, const Stages &stages,
                             const schedules::Schedule &schedule) {
  TaskIndex index;
  for (auto task : step.getBody()->getOps<TaskOp>())
    index.add(stages, task);
  auto find = [&](schedules::TaskKind kind, const schedules::Task &task) {
    return index.lookup(kind, task.stage, task.microBatch);
  };
  for (ArrayRef<schedules::Task> order : schedule.order)
    for (const schedules::Task &task : order) {
      if (task.kind == schedules::TaskKind::Recompute &&
          !find(schedules::TaskKind::Recompute, task))
        return step.emitOpError("has no task ")
               << task.name() << ", which the schedule orders: nothing is "
               << "recomputed there before its gradients come; run "
               << "pipe-split-recompute (--early-recompute), and keep less "
               << "(--remat)";
      if (task.kind == schedules::TaskKind::Backward) {
        if (TaskOp half = find(schedules::TaskKind::InputGradient, task))
          return half.emitOpError(
              "was split by an earlier run of pipe-schedule, but the schedule "
              "now wants the whole backward; run it on the unrolled level");
        continue;
      }
      if (task.kind != schedules::TaskKind::InputGradient)
        continue;
      TaskOp whole = find(schedules::TaskKind::Backward, task);
      if (!whole)
        continue; // Split already, or a stage without gradients.
      StageOp stage = stages[task.stage];
      if (!stage.getInputGradient())
        return whole.emitOpError("is to be split, but stage '@")
               << stage.getSymName()
               << "' has no 'pipe.input_gradient'; run pipe-split-backward";
      TaskSplitter(stages, whole).split();
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Gradient chains
//===----------------------------------------------------------------------===//

/// The summed gradients that a task takes, as an operand number; none on the
/// first task of its stage.
static std::optional<unsigned> sumOperandOf(TaskOp task) {
  unsigned count = task.getNumOperands();
  if (count > 0 && isa<GradientType>(task.getOperand(count - 1).getType()))
    return count - 1;
  return std::nullopt;
}

/// `tasks` all have summed gradients as their last result.
static void thread(ArrayRef<TaskOp> tasks) {
  // The sum that updates and tied weights read is the one that no task takes.
  llvm::DenseSet<Operation *> members(tasks.begin(), tasks.end());
  Value last;
  for (TaskOp task : tasks)
    if (llvm::none_of(task.getResults().back().getUsers(),
                      [&](Operation *user) { return members.contains(user); }))
      last = task.getResults().back();
  SmallVector<OpOperand *> readers;
  if (last)
    for (OpOperand &use : last.getUses())
      readers.push_back(&use);
  Value sum;
  for (TaskOp task : tasks) {
    if (std::optional<unsigned> operand = sumOperandOf(task))
      task->eraseOperand(*operand);
    if (sum)
      task->insertOperands(task.getNumOperands(), sum);
    sum = task.getResults().back();
  }
  for (OpOperand *reader : readers)
    reader->set(sum);
}

void pipewright::pipe::threadGradients(StepOp step, const Stages &stages,
                                       const schedules::Schedule &schedule,
                                       bool asScheduled) {
  TaskIndex index;
  for (auto task : step.getBody()->getOps<TaskOp>())
    index.add(stages, task);
  std::vector<SmallVector<TaskOp>> tasks(stages.size());
  for (ArrayRef<schedules::Task> order : schedule.order)
    for (const schedules::Task &task : order)
      if (TaskOp op = index.lookup(task);
          op && task.endsStash() && stages.hasGradients(task.stage))
        tasks[task.stage].push_back(op);
  for (SmallVector<TaskOp> &chain : tasks) {
    if (!asScheduled)
      llvm::sort(chain, [](TaskOp a, TaskOp b) {
        return *a.getMicroBatch() < *b.getMicroBatch();
      });
    thread(chain);
  }
}
