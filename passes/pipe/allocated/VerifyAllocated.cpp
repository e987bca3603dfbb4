//===- VerifyAllocated.cpp - The contract of the allocated level ----------===//
//
// Runs every program symbolically: a memory that knows who wrote which bytes
// last. Nothing here knows how the plan was made; a wrong life, a wrong offset
// and a missing copy all show as a read that finds another value.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOrthogonalize.h"
#include "passes/pipe/Passes.h"
#include "passes/pipe/allocated/AllocatedBodies.h"
#include "passes/pipe/allocated/AllocatedPrograms.h"
#include "passes/step/BackwardParts.h"
#include "passes/step/Buckets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYALLOCATED
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class VerifyAllocated
    : public pipe::impl::PipeVerifyAllocatedBase<VerifyAllocated> {
public:
  using PipeVerifyAllocatedBase::PipeVerifyAllocatedBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Stages> stages = Stages::read(getOperation());
    if (failed(stages) || failed(stages->ranks()))
      return signalPassFailure();
    int64_t arenas = 0;
    for (ArenaOp arena : getOperation().getOps<ArenaOp>()) {
      ++arenas;
      if (failed(verifyRank(arena, *stages)))
        signalPassFailure();
    }
    for (RankOp program : getOperation().getOps<RankOp>())
      if (static_cast<int64_t>(program.getRank()) >= arenas) {
        program.emitOpError("has no pipe.arena");
        signalPassFailure();
      } else if (failed(verifyRanges(program, *stages))) {
        signalPassFailure();
      }
  }

private:
  /// Whether a replica has its part alone of the weights of a stage, whose bf16
  /// copies alone are read.
  static bool isAbsent(RankArena &arena, const Stages &stages,
                       StringRef stage) {
    OptimizerOp optimizer = arena.optimizerOf(stage);
    return optimizer && optimizer.getHome() && optimizer.getRounded() &&
           !stages.readsMasters(stages.numberOf(stage));
  }

  /// What stages may share, of what each updates.
  enum class Shared { Nothing, Gradients, Weights };

  /// Ranges of the fixed part: none may overlap, except that a flat range of
  /// an optimizer consists of places, that with ZeRO-2 gradients of two stages
  /// may, and with ZeRO-3 weights of which a part is kept elsewhere, or their
  /// bf16 copies: verifyGradients and verifyWeights say when.
  static LogicalResult collectFixed(RankArena &arena, const Stages &stages) {
    const int64_t zero = programOf(arena.op->getParentOfType<ModuleOp>()).zero;
    auto isOtherRange = [](Operation *op, BufferAttr buffer) {
      auto optimizer = dyn_cast<OptimizerOp>(op);
      return optimizer && optimizer.getOtherRanges() &&
             llvm::is_contained(*optimizer.getOtherRanges(), buffer);
    };
    auto whatIs = [&](Operation *op, BufferAttr buffer) {
      if (isOtherRange(op, buffer))
        return Shared::Weights;
      auto place = dyn_cast<PlaceOp>(op);
      if (!place || !place.isUpdated())
        return Shared::Nothing;
      if (place.getGradient() == buffer)
        return zero >= 2 ? Shared::Gradients : Shared::Nothing;
      OptimizerOp optimizer = arena.optimizerOf(place.getStage());
      return optimizer && optimizer.isElsewhere() ? Shared::Weights
                                                  : Shared::Nothing;
    };
    auto mayShare = [&](Operation *op, BufferAttr buffer, Operation *other,
                        BufferAttr range) {
      const Shared what = whatIs(op, buffer);
      if (what == Shared::Nothing || what != whatIs(other, range))
        return false;
      return isOtherRange(op, buffer) || isOtherRange(other, range) ||
             cast<PlaceOp>(op).getStage() != cast<PlaceOp>(other).getStage();
    };
    auto add = [&](Operation *op, BufferAttr buffer) -> LogicalResult {
      for (auto [owner, range] : arena.fixed)
        if (overlap(range, buffer) && !mayShare(op, buffer, owner, range)) {
          InFlightDiagnostic diagnostic =
              op->emitOpError("has ") << buffer << ", which overlaps " << range;
          diagnostic.attachNote(owner->getLoc()) << "here";
          return failure();
        }
      arena.fixed.push_back({op, buffer});
      return success();
    };
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (!(place.isUpdated() && isAbsent(arena, stages, place.getStage())) &&
          failed(add(place, place.getBuffer())))
        return failure();
      for (std::optional<BufferAttr> other :
           {place.getGradient(), place.getRounded(), place.getAside()})
        if (other && failed(add(place, *other)))
          return failure();
    }
    for (auto optimizer : arena.op.getBody()->getOps<OptimizerOp>()) {
      if (optimizer.getShards().has_value() != (zero > 0))
        return optimizer.emitOpError("expects ")
               << (zero > 0 ? "shards" : "no shards") << ": 'zero' is " << zero;
      if (failed(verifyBuckets(arena, optimizer, stages)) ||
          failed(verifyStates(arena, optimizer)))
        return failure();
      for (auto state : optimizer.getStates().getAsRange<BufferAttr>())
        if (failed(add(optimizer, state)))
          return failure();
      for (std::optional<BufferAttr> part :
           {optimizer.getKept(), optimizer.getHome(),
            optimizer.getRoundedHome(), optimizer.getAside()})
        if (part && failed(add(optimizer, *part)))
          return failure();
      for (ArrayAttr given :
           {optimizer.getVersionsAttr(), optimizer.getOtherRangesAttr()})
        if (given)
          for (auto range : given.getAsRange<BufferAttr>())
            if (failed(add(optimizer, range)))
              return failure();
      // Updates of a rank come one after the other.
      std::optional<BufferAttr> workspace = optimizer.getWorkspace();
      bool isKnown = llvm::any_of(arena.fixed, [&](const auto &known) {
        auto other = dyn_cast<OptimizerOp>(known.first);
        return other && other != optimizer && workspace &&
               other.getWorkspace() == workspace && known.second == *workspace;
      });
      if (workspace && !isKnown && failed(add(optimizer, *workspace)))
        return failure();
      if (failed(add(optimizer, optimizer.getHyper())) ||
          failed(verifyFlat(arena, optimizer)))
        return failure();
    }
    return success();
  }

  /// States are as large as what has them. Matrices, and only these, lie behind
  /// the elementwise part, and their products have room.
  static LogicalResult verifyStates(RankArena &arena, OptimizerOp optimizer) {
    auto module = arena.op->getParentOfType<ModuleOp>();
    nn::OptimizerAttr spec = programOf(module).optimizer;
    SmallVector<nn::OptimizerState> kept;
    if (spec)
      kept = spec.getChoice().keptStates();
    const auto elementwise = static_cast<int64_t>(
        optimizer.getElementwise().value_or(optimizer.getWeights().getBytes()));
    for (auto [number, state] :
         llvm::enumerate(optimizer.getStates().getAsRange<BufferAttr>())) {
      int64_t expected = number < kept.size() && !kept[number].isOfMatrices
                             ? elementwise / optimizer.countShards()
                             : optimizer.getShardBytes();
      if (state.getBytes() != expected)
        return optimizer.emitOpError("expects states of ")
               << expected << " bytes, but got " << state;
    }
    bool takesMatrices = spec && spec.getChoice().takesMatrices();
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (place.getStage() != optimizer.getStage() || !place.isUpdated())
        continue;
      auto weight = module.lookupSymbol<nn::WeightOp>(place.getWeight());
      bool isMatrix = takesMatrices && weight && weight.getOutputs();
      if (isMatrix != optimizer.takesAsMatrix(place))
        return place.emitOpError("is ")
               << (isMatrix ? "a matrix" : "no matrix") << ", but lies "
               << (isMatrix ? "in front of" : "among")
               << " those that the optimizer takes as a whole";
      if (isMatrix &&
          optimizer.getWorkspace()->getBytes() < nn::matrixWorkspace(weight))
        return optimizer.emitOpError("expects a workspace of ")
               << nn::matrixWorkspace(weight) << " bytes for '@"
               << place.getWeight() << "', but got "
               << *optimizer.getWorkspace();
    }
    return success();
  }

  /// Parts that replicas take are of what the collectives of the stage are of;
  /// a matrix is in one part.
  static LogicalResult verifyBuckets(RankArena &arena, OptimizerOp optimizer,
                                     const Stages &stages) {
    if (!optimizer.getShards() && !optimizer.getBuckets())
      return success();
    const int64_t whole = optimizer.getWeights().getBytes();
    if (optimizer.getGradients().getBytes() != whole)
      return optimizer.emitOpError("expects gradients of ")
             << whole << " bytes, but got " << optimizer.getGradients();
    const size_t expected =
        bucketsOf(stages, stages.numberOf(optimizer.getStage())).size();
    if (optimizer.bucketsOfWeights().size() != expected)
      return optimizer.emitOpError("expects ")
             << expected << " buckets, but has "
             << optimizer.bucketsOfWeights().size();
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (place.getStage() != optimizer.getStage() || !place.isUpdated())
        continue;
      const BufferAttr weight = place.getBuffer();
      const OptimizerOp::Bucket bucket = optimizer.bucketAround(weight);
      int64_t within = weight.getOffset() - optimizer.getWeights().getOffset() -
                       bucket.begin;
      int64_t bytes = bucket.bytes;
      const bool isInPart =
          optimizer.getShards() && optimizer.takesAsMatrix(place);
      if (isInPart) {
        bytes /= optimizer.countShards();
        within %= bytes;
      }
      if (within + weight.getBytes() > bytes)
        return place.emitOpError("ends behind ")
               << (isInPart ? "the part of the replica that updates it"
                            : "its bucket");
    }
    return success();
  }

  /// Weight and gradient of every updated parameter lie at the same distance
  /// from the start of their flat ranges.
  static LogicalResult verifyFlat(RankArena &arena, OptimizerOp optimizer) {
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (place.getStage() != optimizer.getStage() || !place.isUpdated())
        continue;
      int64_t weight =
          place.getBuffer().getOffset() - optimizer.getWeights().getOffset();
      int64_t gradient = place.getGradient()->getOffset() -
                         optimizer.getGradients().getOffset();
      if (weight != gradient || weight < 0 ||
          weight + place.getBuffer().getBytes() >
              optimizer.getWeights().getBytes())
        return place.emitOpError("lies at ")
               << weight << " of its stage's weights and at " << gradient
               << " of its gradients, which the optimizer takes for one";
      if (place.getRounded().has_value() != optimizer.getRounded().has_value())
        return place.emitOpError("expects a rounded copy exactly where its "
                                 "stage's optimizer writes them");
      if (optimizer.getRounded() && 2 * (place.getRounded()->getOffset() -
                                         optimizer.getRounded()->getOffset()) !=
                                        weight)
        return place.emitOpError("has a rounded copy at ")
               << *place.getRounded() << ", which the optimizer writes at "
               << optimizer.getRounded()->getOffset() + weight / 2;
    }
    return success();
  }

  /// Gradients of a stage are in use from a backward to where they are kept, or
  /// to its update; both leave zeros. Nobody else may use the bytes meanwhile.
  /// An update takes what is kept, and only that.
  static LogicalResult verifyGradients(RankArena &arena, RankOp program) {
    std::map<StringRef, TaskOp> inUse;
    std::set<StringRef> kept;
    for (Operation &op : *program.getBody()) {
      if (auto keep = dyn_cast<KeepGradientsOp>(op)) {
        OptimizerOp optimizer = arena.optimizerOf(keep.getStage());
        if (!optimizer || !optimizer.getKept())
          return keep.emitOpError("has no place for what it keeps; run "
                                  "pipe-plan-memory");
        inUse.erase(keep.getStage());
        kept.insert(keep.getStage());
      }
      if (auto fold = dyn_cast<FoldGradientsOp>(op);
          fold && failed(fold.getSums(arena.op)))
        return failure();
      auto task = dyn_cast<TaskOp>(op);
      if (!task)
        continue;
      OptimizerOp optimizer = arena.optimizerOf(task.getStage());
      if (task.getKind() == TaskKind::update) {
        if (optimizer && optimizer.getKept() &&
            (!kept.contains(task.getStage()) || inUse.count(task.getStage())))
          return task.emitOpError("takes ")
                 << *optimizer.getKept()
                 << ", where not all of its gradients are kept";
        inUse.erase(task.getStage());
      }
      if (!optimizer || (task.getKind() != TaskKind::backward &&
                         task.getKind() != TaskKind::weight_gradient))
        continue;
      for (auto [stage, since] : inUse) {
        BufferAttr other = arena.optimizerOf(stage).getGradients();
        if (stage == task.getStage() ||
            !overlap(other, optimizer.getGradients()))
          continue;
        InFlightDiagnostic diagnostic =
            task.emitOpError("adds to ")
            << optimizer.getGradients() << ", which overlaps " << other
            << " of stage '@" << stage
            << "', before that one's are kept or updated from";
        diagnostic.attachNote(since.getLoc()) << "in use since here";
        return failure();
      }
      inUse.insert({task.getStage(), task});
    }
    return success();
  }

  /// What is loaded has a home, or is split, and is put together in a range;
  /// one, where that is not always the same.
  static LogicalResult verifyHome(RankArena &arena, LoadWeightsOp load) {
    OptimizerOp optimizer = arena.optimizerOf(load.getStage());
    const auto gathers = load.getGathers();
    if (gathers.empty())
      return load.emitOpError("is never put together");
    for (CollectiveOp gather : gathers)
      if (!optimizer ||
          !(optimizer.getSplit() ? gather.getFlatRange(optimizer).has_value()
            : gather.getRounded()
                ? optimizer.getRounded() && optimizer.getRoundedHome()
                : optimizer.getHome().has_value()))
        return load.emitOpError("has no home of the weights that it loads; "
                                "run pipe-plan-memory");
    if (load.getInPlace() != optimizer.getSplit())
      return load.emitOpError(
          "expects to be in place exactly where the weights "
          "of its stage are split");
    if (load.getWeights().has_value() != optimizer.isTold(true))
      return load.emitOpError("expects to say where it puts weights together "
                              "exactly where its stage has other_ranges");
    for (CollectiveOp gather : gathers)
      if (load.getWeights() &&
          (!optimizer.mayBeRead(*load.getWeights()) ||
           gather.getRounded() != optimizer.isRounded(*load.getWeights())))
        return load.emitOpError("puts together in ")
               << *load.getWeights() << " what tasks do not read there";
    return success();
  }

  /// Tasks that read weights which are put together find those of their stage,
  /// whole: loaded last of all that are in these bytes.
  static LogicalResult verifyWeights(RankArena &arena, RankOp program,
                                     const Stages &stages) {
    // Null where there is no such range.
    auto rangeOf = [&](CollectiveOp gather) {
      OptimizerOp optimizer = arena.optimizerOf(gather.getStage());
      return optimizer ? gather.getFlatRange(optimizer).value_or(BufferAttr())
                       : BufferAttr();
    };
    auto share = [&](LoadWeightsOp load, LoadWeightsOp other) {
      return llvm::any_of(load.getGathers(), [&](CollectiveOp one) {
        return llvm::any_of(other.getGathers(), [&](CollectiveOp another) {
          return overlap(rangeOf(one), rangeOf(another));
        });
      });
    };
    // By stage whose weights are there, and what is under way.
    std::map<StringRef, LoadWeightsOp> there;
    llvm::SmallSetVector<Operation *, 4> gathering;
    for (Operation &op : *program.getBody()) {
      if (auto wait = dyn_cast<WaitCollectiveOp>(op))
        gathering.remove(wait.getValue().getDefiningOp());
      if (auto gather = dyn_cast<CollectiveOp>(op);
          gather && !gather.isOfGradients() && !gather.getWeight()) {
        if (!rangeOf(gather))
          return gather.emitOpError("is about what its stage has no place for");
        if (!gather.getRounded() && isAbsent(arena, stages, gather.getStage()))
          return gather.emitOpError("is of weights that have no place: bf16 "
                                    "copies alone are read of stage '@")
                 << gather.getStage() << "'";
        gathering.insert(gather);
      }
      if (auto load = dyn_cast<LoadWeightsOp>(op)) {
        if (failed(verifyHome(arena, load)))
          return failure();
        for (CollectiveOp own : load.getGathers())
          for (Operation *other : gathering)
            if (auto gather = cast<CollectiveOp>(other);
                overlap(rangeOf(own), rangeOf(gather)))
              return load.emitOpError("writes bytes that weights of stage '@")
                     << gather.getStage() << "' are put together in";
        std::erase_if(there, [&](const auto &other) {
          return share(other.second, load);
        });
        there[load.getStage()] = load;
      }
      auto task = dyn_cast<TaskOp>(op);
      // A replica has a part of what that makes.
      if (task && task.getKind() == TaskKind::update)
        there.erase(task.getStage());
      OptimizerOp optimizer =
          task ? arena.optimizerOf(task.getStage()) : OptimizerOp();
      if (!optimizer || !optimizer.isGathered() || !task.getMicroBatch() ||
          !stages.readsUpdated(stages.numberOf(task.getStage()),
                               task.getKind()))
        continue;
      Value weights = task.getGathered();
      for (Operation *made = weights ? weights.getDefiningOp() : nullptr;
           isa_and_present<CollectiveOp>(made);
           made = made->getOperand(0).getDefiningOp()) {
        if (gathering.contains(made))
          return task.emitOpError("reads weights that are still being put "
                                  "together");
        weights = made->getOperand(0);
      }
      auto found = there.find(task.getStage());
      if (!weights || found == there.end() ||
          weights.getDefiningOp() != found->second)
        return task.emitOpError("reads weights in ")
               << task.getWeights().value_or(optimizer.getNewest())
               << ", where others are than those that were put together for it";
      if (task.getWeights() != found->second.getWeights())
        return task.emitOpError("reads weights in ")
               << task.getWeights().value_or(optimizer.getNewest())
               << ", but those that it takes are put together in "
               << found->second.getWeights().value_or(optimizer.getNewest());
    }
    return success();
  }

  /// Where weights that a stage updates lie in its flat range, and how long
  /// that is; or in their bucket of it.
  std::map<StringRef, std::pair<int64_t, int64_t>>
  placesIn(StringRef stage, ArrayRef<const WeightGroup *> weights,
           bool isOfBucket) {
    std::map<StringRef, std::pair<int64_t, int64_t>> places;
    for (ArenaOp arena : getOperation().getOps<ArenaOp>())
      for (auto optimizer : arena.getBody()->getOps<OptimizerOp>())
        for (auto place : arena.getBody()->getOps<PlaceOp>()) {
          if (optimizer.getStage() != stage || place.getStage() != stage ||
              !place.isUpdated() ||
              llvm::none_of(weights, [&](const WeightGroup *group) {
                return group->weight.getSymName() == place.getWeight();
              }))
            continue;
          const BufferAttr all = optimizer.getWeights();
          const BufferAttr around =
              isOfBucket ? optimizer.partOf(
                               all, optimizer.bucketAround(place.getBuffer()))
                         : all;
          places[place.getWeight()] = {place.getBuffer().getOffset() -
                                           around.getOffset(),
                                       around.getBytes()};
        }
    return places;
  }

  /// Copies of a stage that do something with all that they update, or with a
  /// bucket of it, take these ranges for the same. Replicas of a stage are one
  /// program.
  LogicalResult verifyRanges(RankOp program, const Stages &stages) {
    for (auto together : program.getBody()->getOps<CollectiveOp>()) {
      if (together.getWeight() || together.getOver().isOfReplicas())
        continue;
      int32_t stage = stages.numberOf(together.getStage());
      if (stage < 0)
        return together.emitOpError("belongs to no stage of the module");
      StageOp original = stages[stages.originalOf(stage)];
      const auto weights = weightsOf(stages, together);
      const bool isOfBucket = together.isOfPart() || together.getBucket();
      if (placesIn(together.getStage(), weights, isOfBucket) !=
          placesIn(original.getSymName(), weights, isOfBucket))
        return together.emitOpError("takes what stages '@")
               << original.getSymName() << "' and '@" << together.getStage()
               << "' update for the same, but their weights lie differently";
    }
    return success();
  }

  /// Bodies may have got ops since their tasks were cut.
  static LogicalResult verifyParts(RankOp program, const Stages &stages) {
    for (auto task : program.getBody()->getOps<TaskOp>()) {
      if (!task.getParts())
        continue;
      const int64_t expected =
          backwardParts(stages, stages.numberOf(task.getStageAttr()),
                        task.getKind())
              .count();
      if (static_cast<int64_t>(*task.getParts()) != expected)
        return task.emitOpError("is run in ")
               << *task.getParts() << " parts, but its body has " << expected;
    }
    return success();
  }

  LogicalResult verifyRank(ArenaOp op, const Stages &stages) {
    RankArena arena{op, {}};
    if (failed(collectFixed(arena, stages)))
      return failure();
    SmallVector<RankOp> programs;
    for (RankOp program : getOperation().getOps<RankOp>())
      if (program.getRank() == op.getRank())
        programs.push_back(program);
    BodyWrites writes;
    for (int32_t number = 0; number < stages.size(); ++number) {
      StageOp stage = stages[number];
      if (*stage.getRank() != op.getRank())
        continue;
      for (Operation *body : bodiesRunBy(stage, programs)) {
        BodyVerifier verifier(stage, body, arena);
        if (failed(verifier.verify()))
          return failure();
        writes[body] = verifier.arenaWrites();
      }
    }
    for (RankOp program : programs)
      if (failed(verifyParts(program, stages)) ||
          failed(verifyGradients(arena, program)) ||
          failed(verifyWeights(arena, program, stages)) ||
          failed(verifyBuffers(arena, writes, program, stages)))
        return failure();
    return success();
  }
};

} // namespace
