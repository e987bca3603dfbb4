//===- PlanMemory.cpp - Where each byte lives -----------------------------===//
//
// One arena per rank: what lives for ever, then the values of the rank's
// program, packed by their lives, then one workspace that the bodies of all its
// stages share. Values in the memory of the rank's host are packed apart.
// Training and evaluation use the same space behind the fixed part.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/allocated/BodyPlan.h"
#include "passes/pipe/allocated/ProgramPlan.h"
#include "passes/step/StepOrder.h"
#include "passes/step/WeightVersions.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEPLANMEMORY
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// A rank: its stages, and its programs in their order.
struct Rank {
  int64_t number = 0;
  SmallVector<int32_t> stages;
  SmallVector<RankOp> programs;

  /// Programs of one mode.
  SmallVector<RankOp> programsOf(StepMode mode) const {
    SmallVector<RankOp> all = programs;
    llvm::erase_if(all,
                   [&](RankOp program) { return program.getMode() != mode; });
    return all;
  }
};

/// What one mode needs beside the fixed part: the values of its program, then
/// the workspace that its bodies share.
struct ModePlan {
  std::vector<ProgramPlan> programs;
  std::vector<std::pair<int32_t, BodyPlan>> bodies;
  int64_t valueBytes = 0, workspaceBytes = 0;

  int64_t workspaceAfter(int64_t values) const {
    return alignedSize(values + valueBytes);
  }
  int64_t endAfter(int64_t values) const {
    return workspaceBytes ? workspaceAfter(values) + workspaceBytes
                          : values + valueBytes;
  }
};

} // namespace

static ModePlan planMode(const Stages &stages, const Rank &rank, StepMode mode,
                         const ArenaLayout &layout, int64_t spare) {
  ModePlan plan;
  const SmallVector<RankOp> programs = rank.programsOf(mode);
  for (RankOp program : programs) {
    plan.programs.emplace_back(stages, layout, program, spare);
    plan.valueBytes = std::max(plan.valueBytes, plan.programs.back().bytes());
  }
  for (int32_t stage : rank.stages)
    for (Operation *body : bodiesRunBy(stages[stage], programs)) {
      plan.bodies.emplace_back(stage, BodyPlan(body));
      plan.workspaceBytes = std::max(
          plan.workspaceBytes, plan.bodies.back().second.workspaceBytes());
    }
  return plan;
}

/// The old versions of the weights of each stage of a rank that its training
/// has to keep.
static FailureOr<std::vector<WeightVersions>>
planVersions(const Stages &stages, const Rank &rank, int64_t updates) {
  std::vector<WeightVersions> all(rank.stages.size());
  for (RankOp program : rank.programsOf(StepMode::train))
    for (auto [stage, versions] : llvm::zip_equal(rank.stages, all)) {
      FailureOr<WeightVersions> planned =
          planWeightVersions(program, stages.nameOf(stage), updates);
      if (failed(planned))
        return failure();
      versions = std::move(*planned);
    }
  return all;
}

/// Tells the tasks of a stage that reads old weights where its version lies,
/// and its updates where they keep one.
static void writeVersions(RankOp program, FlatSymbolRefAttr stage,
                          const WeightVersions &versions,
                          const ArenaLayout::Optimizer &optimizer) {
  auto buffer = [&](ArenaLayout::Range range) {
    return BufferAttr::get(program.getContext(), BufferSpace::arena,
                           range.offset, range.bytes);
  };
  for (auto task : program.getBody()->getOps<TaskOp>()) {
    if (task.getStageAttr() != stage)
      continue;
    task.removeWeightsAttr();
    auto slot = versions.slotOf.find(task);
    if (slot != versions.slotOf.end())
      task.setWeightsAttr(buffer(optimizer.versions[slot->second]));
    else if (task.getKind() != TaskKind::update && versions.slots > 0)
      task.setWeightsAttr(buffer(optimizer.newest()));
  }
}

/// Tells loads, and tasks that take what these put together, where that is.
static void writeGathered(ArrayRef<RankOp> programs, FlatSymbolRefAttr stage,
                          const ArenaLayout::Optimizer &optimizer) {
  size_t turn = 0;
  for (RankOp program : programs)
    for (auto load : program.getBody()->getOps<LoadWeightsOp>()) {
      const auto gathers = load.getGathers();
      if (load.getStageAttr() != stage || gathers.empty())
        continue;
      load.removeWeightsAttr();
      const ArenaLayout::Range *range = turn < optimizer.gathered.size()
                                            ? &optimizer.gathered[turn++]
                                            : nullptr;
      if (range)
        load.setWeightsAttr(BufferAttr::get(program.getContext(),
                                            BufferSpace::arena, range->offset,
                                            range->bytes));
      for (CollectiveOp gather : gathers)
        for (Operation *user : gather.getResult().getUsers())
          if (auto task = dyn_cast<TaskOp>(user); task && range)
            task.setWeightsAttr(load.getWeightsAttr());
          else if (task)
            task.removeWeightsAttr();
    }
}

/// When the rank's training uses the gradients of each stage: from a backward
/// to where they are kept or to the update, and to the end if there is none.
static std::vector<ArenaLayout::RangeUse> gradientUses(const Stages &stages,
                                                       const Rank &rank) {
  const ArrayRef<int32_t> onRank = rank.stages;
  std::vector<ArenaLayout::RangeUse> uses(onRank.size());
  for (RankOp program : rank.programsOf(StepMode::train)) {
    std::map<int32_t, int64_t> begins;
    for (auto [point, op] : llvm::enumerate(*program.getBody())) {
      auto task = dyn_cast<TaskOp>(op);
      auto keep = dyn_cast<KeepGradientsOp>(op);
      if (!task && !keep)
        continue;
      const int32_t stage =
          stages.numberOf(task ? task.getStageAttr() : keep.getStageAttr());
      ArenaLayout::RangeUse &use =
          uses[llvm::find(onRank, stage) - onRank.begin()];
      if (task && plainTask(stages, task).endsStash())
        begins.insert({stage, point});
      if (!keep && task.getKind() != TaskKind::update)
        continue;
      use.isKept |= static_cast<bool>(keep);
      auto end = static_cast<int64_t>(point);
      if (auto begin = begins.find(stage); begin != begins.end()) {
        use.turns.push_back({begin->second, end});
        begins.erase(begin);
      } else if (!use.isKept) {
        use.turns.push_back({end, end});
      }
    }
    const auto end =
        static_cast<int64_t>(program.getBody()->getOperations().size());
    for (auto [stage, begin] : begins)
      uses[llvm::find(onRank, stage) - onRank.begin()].turns.push_back(
          {begin, end});
  }
  return uses;
}

/// How many sums of groups of micro-batches a rank's training has aside.
static int64_t sumsAside(const Rank &rank) {
  int64_t most = 0;
  for (RankOp program : rank.programs)
    for (auto fold : program.getBody()->getOps<FoldGradientsOp>())
      most = std::max(most, fold.countLevels());
  return most;
}

/// When the rank's programs use the weights of each stage, and the bf16 copies:
/// always, unless they are put together for tasks. Training comes before
/// evaluation. Nothing where none are.
static void findWeightUses(const Stages &stages, const Rank &rank,
                           ArenaLayout::RangeUses &uses) {
  const ArrayRef<int32_t> onRank = rank.stages;
  std::vector<ArenaLayout::RangeUse> weights(onRank.size());
  std::vector<ArenaLayout::RangeUse> rounded(onRank.size());
  int64_t point = 0;
  for (RankOp program : rank.programs) {
    llvm::DenseMap<Operation *, int64_t> pointOf;
    for (Operation &op : *program.getBody())
      pointOf[&op] = point++;
    for (auto load : program.getBody()->getOps<LoadWeightsOp>()) {
      if (load.getInPlace()) {
        uses.split.insert(stages.numberOf(load.getStageAttr()));
        continue;
      }
      auto number = llvm::find(onRank, stages.numberOf(load.getStageAttr())) -
                    onRank.begin();
      const auto gathers = load.getGathers();
      int64_t last = pointOf.at(load);
      for (CollectiveOp gather : gathers)
        for (Operation *user : gather.getResult().getUsers())
          last = std::max(last, pointOf.at(user));
      for (auto *uses : {&weights, &rounded}) {
        if (llvm::none_of(gathers, [&](CollectiveOp gather) {
              return gather.getRounded() == (uses == &rounded);
            }))
          continue;
        (*uses)[number].turns.push_back({pointOf.at(load), last});
        if (load.getRange())
          (*uses)[number].ranges.push_back(*load.getRange());
      }
      weights[number].isKept = rounded[number].isKept = true;
    }
  }
  if (llvm::none_of(weights, [](const auto &use) { return use.isKept; }))
    return;
  for (auto *all : {&weights, &rounded})
    for (ArenaLayout::RangeUse &use : *all)
      if (!use.isKept)
        use.turns.push_back({0, point});
  uses.weights = std::move(weights);
  uses.rounded = std::move(rounded);
}

/// Plans all programs of one rank and emits its arena. Training and evaluation
/// never run at once: both begin behind the fixed part.
static LogicalResult planRank(ModuleOp module, const Stages &stages,
                              const Rank &rank,
                              const nn::OptimizerChoice &optimizer,
                              int64_t spare, OpBuilder &builder) {
  const ProgramFields program = programOf(module);
  FailureOr<std::vector<WeightVersions>> versions =
      planVersions(stages, rank, program.updates);
  if (failed(versions))
    return failure();
  auto oldVersions = llvm::map_to_vector(
      *versions, [](const WeightVersions &of) { return of.slots; });
  ArenaLayout::RangeUses uses;
  if (program.zero >= 2)
    uses.gradients = gradientUses(stages, rank);
  uses.aside = sumsAside(rank);
  findWeightUses(stages, rank, uses);
  ArenaLayout layout(stages, rank.stages, optimizer, oldVersions, uses,
                     program.zero > 0 ? program.replicas : 1);
  int64_t values = alignedSize(layout.bytes());
  ModePlan train = planMode(stages, rank, StepMode::train, layout, spare);
  ModePlan evaluate = planMode(stages, rank, StepMode::evaluate, layout, spare);
  int64_t workspace = train.workspaceAfter(values);
  layout.addRegion("activations", values, values + train.valueBytes);
  layout.addRegion("workspace", workspace, workspace + train.workspaceBytes);
  int64_t trainEnd = train.endAfter(values);
  layout.addRegion("evaluation", trainEnd,
                   std::max(trainEnd, evaluate.endAfter(values)));

  for (ModePlan *plan : {&train, &evaluate}) {
    for (ProgramPlan &program : plan->programs)
      program.write(stages, layout, values);
    for (auto &[stage, body] : plan->bodies)
      body.write(layout, stage, plan->workspaceAfter(values));
  }

  int64_t hostBytes = 0;
  for (const ProgramPlan &program : train.programs)
    hostBytes = std::max(hostBytes, program.hostBytes());
  auto arena = ArenaOp::create(builder, module.getLoc(), rank.number,
                               layout.bytes(), hostBytes);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&arena.getBodyRegion().emplaceBlock());
  layout.emit(builder, stages);

  for (auto [stage, of] : llvm::zip_equal(rank.stages, *versions)) {
    const ArenaLayout::Optimizer *ranges = layout.optimizerOf(stage);
    if (!ranges)
      continue;
    for (RankOp program : rank.programsOf(StepMode::train))
      writeVersions(program, stages.nameOf(stage), of, *ranges);
    writeGathered(rank.programs, stages.nameOf(stage), *ranges);
  }
  return success();
}

namespace {

/// A collective is about what its stage holds, and somebody waits for it.
static LogicalResult verifyPlace(const Stages &stages, CollectiveOp op) {
  int32_t stage = stages.numberOf(op.getStageName());
  if (stage < 0)
    return op.emitOpError("belongs to no stage of the module");
  if (!op.getWait())
    return op.emitOpError("is never waited for");
  if (!op.getWeight())
    return stages.hasUpdate(stage)
               ? success()
               : op.emitOpError("is about what the optimizer of stage '@")
                     << op.getStage() << "' updates, which has none";
  const WeightGroup *group = stages.groupOf(op.getWeightAttr());
  if (group && llvm::is_contained(group->stages, stage))
    return success();
  return op.emitOpError("is about the weight '@")
         << *op.getWeight() << "', which stage '@" << op.getStage()
         << "' does not hold";
}

/// A load is of a stage of its rank. Either all loads of a rank, of which
/// `first` is one, name ranges, each for one kind of weights, or none does.
static LogicalResult verifyLoad(const Stages &stages, ArrayRef<int32_t> ranks,
                                LoadWeightsOp load, LoadWeightsOp first) {
  const int32_t stage = stages.numberOf(load.getStage());
  const auto rank =
      static_cast<int64_t>(cast<RankOp>(load->getParentOp()).getRank());
  if (stage < 0 || !stages.hasUpdate(stage) || ranks[stage] != rank)
    return load.emitOpError("is of no stage of its rank that has weights to "
                            "update");
  auto gathers = load.getGathers();
  if (load.getRange() && llvm::any_of(gathers, [&](CollectiveOp gather) {
        return gather.getRounded() != gathers.front().getRounded();
      }))
    return load.emitOpError("expects no range of a stage that reads some "
                            "weights in f32 and bf16 copies of others");
  if (load.getRange().has_value() == first.getRange().has_value())
    return success();
  InFlightDiagnostic diagnostic = load.emitOpError(
      "expects a range where others of its rank have one, and only there");
  diagnostic.attachNote(first.getLoc()) << "the first one is here";
  return diagnostic;
}

class PlanMemory : public pipe::impl::PipePlanMemoryBase<PlanMemory> {
public:
  using PipePlanMemoryBase::PipePlanMemoryBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (linkBuffers < 0) {
      module.emitError("pipe-plan-memory expects link-buffers of at least 0, "
                       "but got ")
          << linkBuffers.getValue();
      return signalPassFailure();
    }
    for (ArenaOp arena : llvm::make_early_inc_range(module.getOps<ArenaOp>()))
      arena.erase();
    if (module.getOps<RankOp>().empty()) {
      module.emitError(
          "expects a program for every rank; run pipe-insert-transfers");
      return signalPassFailure();
    }
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    FailureOr<SmallVector<int32_t>> ranks = stages->ranks();
    if (failed(ranks))
      return signalPassFailure();
    nn::OptimizerAttr optimizer = programOf(module).optimizer;
    if (!optimizer) {
      module.emitError("expects '")
          << PipeDialect::kProgram << "' to have an 'optimizer'";
      return signalPassFailure();
    }

    auto isMatrix = [](nn::WeightOp weight) {
      return weight.getRole() == nn::WeightRole::Parameter &&
             weight.getOutputs().has_value();
    };
    if (optimizer.getChoice().takesMatrices() &&
        llvm::none_of(module.getOps<nn::WeightOp>(), isMatrix)) {
      module.emitError("expects a weight that ")
          << optimizer.getName().getValue()
          << " takes as a matrix ('outputs'), but there is none: take adamw, "
             "name some by --matrices, or compile the model in place of text "
             "of a later level";
      return signalPassFailure();
    }

    std::vector<Rank> all(numRanks(module, *ranks));
    for (auto [number, rank] : llvm::enumerate(all))
      rank.number = static_cast<int64_t>(number);
    for (auto [stage, rank] : llvm::enumerate(*ranks))
      all[rank].stages.push_back(static_cast<int32_t>(stage));
    std::map<int64_t, LoadWeightsOp> loads;
    for (RankOp program : module.getOps<RankOp>()) {
      if (program.getRank() >= all.size()) {
        program.emitOpError("is beyond the module's ")
            << all.size() << " ranks";
        return signalPassFailure();
      }
      all[program.getRank()].programs.push_back(program);
      for (auto together : program.getBody()->getOps<CollectiveOp>())
        if (failed(verifyPlace(*stages, together)))
          return signalPassFailure();
      for (auto load : program.getBody()->getOps<LoadWeightsOp>()) {
        LoadWeightsOp first =
            loads.insert({program.getRank(), load}).first->second;
        if (failed(verifyLoad(*stages, *ranks, load, first)))
          return signalPassFailure();
      }
    }

    OpBuilder builder(*module.getOps<RankOp>().begin());
    for (const Rank &rank : all)
      if (failed(planRank(module, *stages, rank, optimizer.getChoice(),
                          linkBuffers, builder)))
        return signalPassFailure();
  }
};

} // namespace
