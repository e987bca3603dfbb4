//===- UnrollMicrobatches.cpp - Stages to M x S tasks ---------------------===//
//
// Writes out every task of a training step and of an evaluation as a dataflow
// graph: what a task needs stands in its operands. Gradients of a stage are
// threaded through its backward tasks in ascending order of micro-batches, so
// that their rounding is the same under every schedule.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Stages.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEUNROLLMICROBATCHES
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// Builds one `pipe.step`. Values of one micro-batch are forgotten when the
/// next begins; only gradient chains go on.
class StepBuilder {
public:
  StepBuilder(const Stages &stages, OpBuilder &builder)
      : stages(stages), builder(builder), forwards(stages.size()),
        backwards(stages.size()), gradients(stages.size()),
        sums(stateOfSums(programOf(stages[0]->getParentOfType<ModuleOp>()))) {}

  LogicalResult addForward(int32_t stage, int64_t microBatch, TaskKind kind);
  SmallVector<Value> savedFor(int32_t stage, TaskKind kind) const;
  LogicalResult addBackward(int32_t stage, int64_t microBatch);
  /// The updates of all stages, each from its own gradients; one of several of
  /// a step has a number.
  void addUpdates(std::optional<int64_t> number);

private:
  Location locationOf(int32_t stage) const { return stages[stage].getLoc(); }

  TaskOp createTask(TaskKind kind, int32_t stage,
                    std::optional<int64_t> microBatch, ValueRange operands,
                    TypeRange results) {
    return TaskOp::create(
        builder, locationOf(stage), results,
        TaskKindAttr::get(builder.getContext(), kind), stages.nameOf(stage),
        microBatch ? builder.getI64IntegerAttr(*microBatch) : IntegerAttr(),
        operands, /*buffers=*/ArrayAttr());
  }

  const Stages &stages;
  OpBuilder &builder;
  /// The tasks of the current micro-batch.
  SmallVector<TaskOp> forwards, backwards;
  /// The gradients of each stage so far, null before the first; or the update
  /// that cleared them.
  SmallVector<Value> gradients;
  const ReplicaState sums;
};

LogicalResult StepBuilder::addForward(int32_t stage, int64_t microBatch,
                                      TaskKind kind) {
  StageOp op = stages[stage];
  FlatSymbolRefAttr name = stages.nameOf(stage);
  ArrayAttr sources;
  Block *body;
  SmallVector<Type> results;
  if (kind == TaskKind::forward) {
    sources = op.getForward().getSources();
    body = op.getForward().getBody();
    llvm::append_range(results,
                       op.getForward().getReturn().getValues().getTypes());
    for (const StashRange &range : op.getRanges(TaskKind::forward))
      results.push_back(range.type);
  } else {
    sources = op.getEvaluate().getSources();
    body = op.getEvaluate().getBody();
    llvm::append_range(results,
                       op.getEvaluate().getReturn().getValues().getTypes());
  }

  SmallVector<Value> operands;
  for (auto [number, source] : llvm::enumerate(sources)) {
    if (auto input = dyn_cast<InputAttr>(source)) {
      operands.push_back(InputOp::create(
          builder, locationOf(stage), body->getArgument(number).getType(),
          input.getName(), builder.getI64IntegerAttr(microBatch), name,
          /*buffers=*/ArrayAttr()));
      continue;
    }
    auto output = cast<OutputAttr>(source);
    int32_t from = stages.numberOf(output.getStage());
    TaskOp producer = from < 0 ? TaskOp() : forwards[from];
    if (!producer ||
        output.getIndex() >= static_cast<int64_t>(producer.getNumResults()))
      return op.emitOpError("takes result ")
             << output.getIndex() << " of stage " << output.getStage()
             << ", which has none in a task of kind '"
             << stringifyTaskKind(kind) << "'";
    operands.push_back(producer.getResult(output.getIndex()));
  }
  forwards[stage] = createTask(kind, stage, microBatch, operands, results);
  return success();
}

/// What a body reads of its forward: arguments, results, and the stash.
SmallVector<Value> StepBuilder::savedFor(int32_t stage, TaskKind kind) const {
  GradientBodyInterface body = stages[stage].gradientBodyOf(kind);
  TaskOp forward = forwards[stage];
  SmallVector<Value> operands;
  for (int64_t input : body.getInputs())
    operands.push_back(forward.getOperand(input));
  for (int64_t output : body.getOutputs())
    operands.push_back(forward.getResult(output));
  for (Type type : stages[stage].getRangesReadBy(body, TaskKind::forward))
    operands.push_back(forward.getStash(type));
  return operands;
}

LogicalResult StepBuilder::addBackward(int32_t stage, int64_t microBatch) {
  BackwardOp op = stages[stage].getBackward();
  SmallVector<Value> operands = savedFor(stage, TaskKind::backward);
  for (int64_t output : op.getGradientsOf()) {
    int64_t number = stages.linkOutOf(stage, output);
    if (number < 0 || stages.links()[number].gradientResult < 0)
      return op.emitOpError("needs the gradient of result ")
             << output << ", which no stage computes";
    const StageLink &link = stages.links()[number];
    operands.push_back(backwards[link.to].getResult(link.gradientResult));
  }
  // Which micro-batches of a stage do not keep their stash is a matter of the
  // schedule.
  if (stages[stage].getRecompute() && !stages[stage].getKeeps()) {
    SmallVector<Type> types;
    for (const StashRange &range : stages[stage].getRanges(TaskKind::recompute))
      types.push_back(range.type);
    llvm::append_range(operands,
                       createTask(TaskKind::recompute, stage, microBatch,
                                  savedFor(stage, TaskKind::recompute), types)
                           .getResults());
  }
  if (gradients[stage])
    operands.push_back(gradients[stage]);

  SmallVector<Type> results(op.getReturn().getValues().getTypes());
  if (stages.hasGradients(stage))
    results.push_back(
        GradientType::get(builder.getContext(), stages.nameOf(stage), sums));
  backwards[stage] =
      createTask(TaskKind::backward, stage, microBatch, operands, results);
  if (stages.hasGradients(stage))
    gradients[stage] = backwards[stage].getResults().back();
  return success();
}

void StepBuilder::addUpdates(std::optional<int64_t> number) {
  for (int32_t stage = 0; stage < stages.size(); ++stage) {
    if (!stages.hasUpdate(stage))
      continue;
    Type type = UpdatedType::get(builder.getContext(), stages.nameOf(stage));
    TaskOp update = createTask(TaskKind::update, stage, std::nullopt,
                               gradients[stage], type);
    if (number)
      update.setNumber(*number);
    gradients[stage] = update.getResult(0);
  }
}

class UnrollMicrobatches
    : public pipe::impl::PipeUnrollMicrobatchesBase<UnrollMicrobatches> {
public:
  using PipeUnrollMicrobatchesBase::PipeUnrollMicrobatchesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // A second run would write every task twice.
    if (!module.getOps<StepOp>().empty() || !module.getOps<RankOp>().empty())
      return;
    FailureOr<Stages> stages = Stages::read(module);
    FailureOr<int64_t> microBatches = microBatchesOf(module);
    if (failed(stages) || failed(microBatches))
      return signalPassFailure();
    if (stages->size() == 0) {
      module.emitError("expects at least one pipe.stage");
      return signalPassFailure();
    }
    if (*microBatches % stages->copies() != 0) {
      module.emitError("expects an even number of micro-batches for two copies "
                       "of the model, but got ")
          << *microBatches;
      return signalPassFailure();
    }
    if (failed(checkUpdates(module, *stages, *microBatches)))
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    if (failed(unrollTraining(*stages, *microBatches, builder)) ||
        failed(unrollEvaluation(*stages, *microBatches, builder)))
      signalPassFailure();
  }

private:
  static StepOp createStep(ModuleOp module, StepMode mode, OpBuilder &builder) {
    builder.setInsertionPointToEnd(module.getBody());
    auto step = StepOp::create(builder, module.getLoc(), mode);
    builder.setInsertionPointToEnd(&step.getBodyRegion().emplaceBlock());
    return step;
  }

  /// Several updates in a step mean old weights for some micro-batches.
  static LogicalResult checkUpdates(ModuleOp module, const Stages &stages,
                                    int64_t microBatches) {
    int64_t updates = programOf(module).updates;
    if (microBatches % (updates * stages.copies()) != 0)
      return module.emitError("expects updates that share the micro-batches "
                              "evenly, but got ")
             << updates << " updates and " << microBatches << " micro-batches";
    if (updates == 1)
      return success();
    return stages.refuseTiedWeights();
  }

  LogicalResult unrollTraining(const Stages &stages, int64_t microBatches,
                               OpBuilder &builder) {
    createStep(getOperation(), StepMode::train, builder);
    StepBuilder step(stages, builder);
    int64_t updates = programOf(getOperation()).updates;
    int64_t perUpdate = microBatches / updates;
    for (int64_t m = 0; m < microBatches; ++m) {
      for (int32_t stage = 0; stage < stages.size(); ++stage)
        if (stages.runs(stage, m, microBatches) &&
            failed(step.addForward(stage, m, TaskKind::forward)))
          return failure();
      for (int32_t stage = stages.size() - 1; stage >= 0; --stage)
        if (stages.runs(stage, m, microBatches) &&
            stages[stage].getBackward() && failed(step.addBackward(stage, m)))
          return failure();
      if (updates > 1 && (m + 1) % perUpdate == 0)
        step.addUpdates(m / perUpdate);
    }
    if (updates == 1)
      step.addUpdates(std::nullopt);
    return success();
  }

  LogicalResult unrollEvaluation(const Stages &stages, int64_t microBatches,
                                 OpBuilder &builder) {
    auto hasEvaluate = [&](int32_t stage) {
      return stages[stage].getEvaluate() != nullptr;
    };
    if (llvm::none_of(llvm::seq(stages.size()), hasEvaluate))
      return success();
    createStep(getOperation(), StepMode::evaluate, builder);
    StepBuilder step(stages, builder);
    for (int64_t m = 0; m < microBatches; ++m)
      for (int32_t stage = 0; stage < stages.size(); ++stage)
        if (hasEvaluate(stage) &&
            failed(step.addForward(stage, m, TaskKind::evaluate)))
          return failure();
    return success();
  }
};

} // namespace
