//===- Pipelines.cpp - From one level to the next -------------------------===//
//
// Why this order stands at the declarations.
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Pipelines.h"

#include "passes/call/Passes.h"
#include "passes/nn/Passes.h"
#include "passes/pipe/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright {

void buildImportPipeline(OpPassManager &pm,
                         const ImportPipelineOptions &options) {
  nn::NNSimplifyOptions simplify;
  simplify.noDropout = options.noDropout;
  pm.addPass(nn::createNNVerifyImported());
  pm.addPass(nn::createNNSimplify(simplify));
  pm.addPass(nn::createNNFuseComposites({options.longestAttention}));
  pm.addPass(nn::createNNSimplify(simplify));
  if (options.vocabularyMultiple > 1)
    pm.addPass(nn::createNNPadVocabulary(
        {options.vocabularyMultiple, options.leastVocabulary}));
  if (options.bf16)
    pm.addPass(nn::createNNLowerPrecision());
  if (options.channelsLast)
    pm.addPass(nn::createNNChannelsLast());
  if (options.packAttention)
    pm.addPass(call::createCallPackAttention({options.cachedAttention}));
  if (options.markMatrices)
    pm.addPass(nn::createNNMarkMatrices({options.matrices}));
  pm.addPass(nn::createNNDivideByBatch());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(nn::createNNVerifyImported());
}

/// What schedules run as tasks of their own, behind kernels.
static void splitTasks(OpPassManager &pm,
                       const StagedPipelineOptions &options) {
  if (options.earlyRecompute)
    pm.addPass(pipe::createPipeSplitRecompute());
  if (options.splitBackward)
    pm.addPass(pipe::createPipeSplitBackward({options.wholeStash}));
}

void buildStagedPipeline(OpPassManager &pm,
                         const StagedPipelineOptions &options) {
  pipe::PipePartitionStagesOptions partition;
  partition.stages = options.stages;
  partition.balance = options.balance;
  partition.memoryLimit.assign(options.stageMemory.begin(),
                               options.stageMemory.end());
  partition.rankOfStage.assign(options.rankOfStage.begin(),
                               options.rankOfStage.end());
  pipe::PipeRematerializeOptions rematerialize;
  // What is pointwise is chosen where it is decided what to keep, and a part of
  // it is kept of what that leaves.
  auto isPointwise = [](llvm::StringRef word) {
    return word == "pointwise" || word.starts_with("keep:");
  };
  auto wordsWith =
      [&](llvm::function_ref<llvm::StringRef(llvm::StringRef)> of) {
        llvm::SmallVector<llvm::StringRef> words;
        llvm::StringRef(options.remat).split(words, ',');
        return llvm::join(llvm::map_range(words, of), ",");
      };
  rematerialize.mode = wordsWith(
      [](llvm::StringRef word) { return word == "pointwise" ? "none" : word; });
  pipe::PipeDifferentiateOptions differentiate;
  // A list of another length is refused in the words of the option.
  const std::string repeat = wordsWith([&](llvm::StringRef word) {
    return isPointwise(word) ? "pointwise" : "cheap";
  });
  differentiate.repeat =
      llvm::StringRef(repeat).contains("pointwise") ? repeat : "cheap";
  differentiate.keepGelu =
      call::mayFuseGelu(options.epilogues, options.architecture);
  pm.addPass(pipe::createPipePartitionStages(partition));
  pm.addPass(pipe::createPipeDifferentiate(differentiate));
  pm.addPass(pipe::createPipeHoistLossGradient());
  // No canonicalizer here: it would move constants out of the stages.
  pm.addPass(createCSEPass());
  if (!options.epilogues.empty()) {
    call::CallFuseEpiloguesOptions epilogues;
    epilogues.epilogues = options.epilogues;
    epilogues.architecture = options.architecture;
    pm.addPass(call::createCallFuseEpilogues(epilogues));
  } else {
    pm.addPass(nn::createNNShareTransposes());
  }
  if (options.formKernels) {
    pm.addPass(nn::createNNBubbleUpSlices());
    pm.addPass(nn::createNNFormSubviews());
    pm.addPass(nn::createNNFormKernels());
  }
  pm.addPass(pipe::createPipeRematerialize(rematerialize));
  if (options.formKernels)
    splitTasks(pm, options);
  if (options.copies == 2)
    pm.addPass(pipe::createPipeMirrorStages());
  pm.addPass(pipe::createPipeVerifyStaged());
}

void buildKernelsOfStages(OpPassManager &pm,
                          const StagedPipelineOptions &options) {
  pm.addPass(nn::createNNBubbleUpSlices());
  pm.addPass(nn::createNNFormSubviews());
  pm.addPass(nn::createNNFormKernels());
  splitTasks(pm, options);
  pm.addPass(pipe::createPipeVerifyStaged());
}

void buildUnrolledPipeline(OpPassManager &pm,
                           const UnrolledPipelineOptions &options) {
  pm.addPass(pipe::createPipeUnrollMicrobatches());
  if (!options.draft)
    pm.addPass(pipe::createPipeVerifyUnrolled());
}

void buildScheduledPipeline(OpPassManager &pm,
                            const ScheduledPipelineOptions &options) {
  pipe::PipeScheduleOptions schedule;
  schedule.policy = options.policy;
  schedule.ranks = options.ranks;
  schedule.offload = options.offload;
  pm.addPass(pipe::createPipeSchedule(schedule));
  pipe::PipeSynchronizeWeightsOptions synchronize;
  synchronize.tied = options.tiedWeights;
  synchronize.copiesLast = options.copiesLast;
  pm.addPass(pipe::createPipeSynchronizeWeights(synchronize));
  pipe::PipeShareGradientsOptions share;
  share.ranges = options.zeroBuffers;
  pm.addPass(pipe::createPipeShareGradients(share));
  pipe::PipeGatherWeightsOptions gather;
  gather.ranges = options.zeroBuffers;
  pm.addPass(pipe::createPipeGatherWeights(gather));
  pm.addPass(pipe::createPipeInsertTransfers());
  pipe::PipeFoldGradientsOptions fold;
  fold.groups = options.sumGroups;
  pm.addPass(pipe::createPipeFoldGradients(fold));
  pm.addPass(pipe::createPipeInterleaveSums());
  if (!options.draft)
    pm.addPass(pipe::createPipeVerifySchedule());
}

void buildAllocatedPipeline(OpPassManager &pm,
                            const AllocatedPipelineOptions &options) {
  // What is added in place has no bytes of its own.
  if (options.assignStreams)
    pm.addPass(pipe::createPipeAccumulateInKernels());
  pipe::PipePlanMemoryOptions memory;
  memory.linkBuffers = options.assignStreams ? 3 : 0;
  pm.addPass(pipe::createPipePlanMemory(memory));
  pm.addPass(pipe::createPipeAttachOptimizerKernels());
  if (options.draft)
    return;
  pm.addPass(pipe::createPipeVerifyAllocated());
  if (options.assignStreams) {
    pm.addPass(pipe::createPipeAssignStreams());
    pm.addPass(pipe::createPipeVerifyStreams());
  }
}

PipelineOptions &PipelineOptions::operator=(const PipelineOptions &other) {
  import.copyOptionValuesFrom(other.import);
  staged.copyOptionValuesFrom(other.staged);
  unrolled.copyOptionValuesFrom(other.unrolled);
  scheduled.copyOptionValuesFrom(other.scheduled);
  allocated.copyOptionValuesFrom(other.allocated);
  return *this;
}

void registerPipelines() {
  PassPipelineRegistration<ImportPipelineOptions>(
      "pipewright-import", "Frontend's ops to the import level",
      buildImportPipeline);
  PassPipelineRegistration<StagedPipelineOptions>(
      "pipewright-staged", "Import level to the staged level",
      buildStagedPipeline);
  PassPipelineRegistration<UnrolledPipelineOptions>(
      "pipewright-unrolled", "Staged level to the unrolled level",
      buildUnrolledPipeline);
  PassPipelineRegistration<ScheduledPipelineOptions>(
      "pipewright-scheduled", "Unrolled level to the scheduled level",
      buildScheduledPipeline);
  PassPipelineRegistration<AllocatedPipelineOptions>(
      "pipewright-allocated", "Scheduled level to the allocated level",
      buildAllocatedPipeline);
}

} // namespace pipewright
