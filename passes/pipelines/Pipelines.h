//===- Pipelines.h - From one level to the next -----------------*- C++ -*-===//
//
// One function for each level of the compiler, and under the level's name a
// pipeline of pipewright-opt (`--pipewright-scheduled="policy=1f1b ranks=2"`).
// Each ends with the pass that verifies the level it makes, so a mistake is
// found where it was made.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H
#define PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

namespace pipewright {

struct ImportPipelineOptions
    : mlir::PassPipelineOptions<ImportPipelineOptions> {
  Option<bool> noDropout{*this, "no-dropout",
                         llvm::cl::desc("Leave dropout out")};
  Option<bool> bf16{*this, "bf16",
                    llvm::cl::desc("Compute in bf16 (nn-lower-precision)")};
  Option<int64_t> vocabularyMultiple{
      *this, "vocabulary-multiple", llvm::cl::init(1),
      llvm::cl::desc("See nn-pad-vocabulary; a multiple of 1 pads nothing")};
  Option<int64_t> leastVocabulary{*this, "least-vocabulary",
                                  llvm::cl::init(4096),
                                  llvm::cl::desc("See nn-pad-vocabulary")};
  Option<bool> channelsLast{
      *this, "channels-last",
      llvm::cl::desc("Images have their channels last (nn-channels-last)")};
  Option<int64_t> longestAttention{*this, "longest-attention",
                                   llvm::cl::init(0),
                                   llvm::cl::desc("See nn-fuse-composites")};
  Option<bool> markMatrices{
      *this, "mark-matrices",
      llvm::cl::desc("Mark what the optimizer takes as matrices "
                     "(nn-mark-matrices)")};
  Option<std::string> matrices{*this, "matrices", llvm::cl::init(""),
                               llvm::cl::desc("The names of nn-mark-matrices")};
  Option<bool> packAttention{
      *this, "pack-attention",
      llvm::cl::desc("Attention reads by strides (call-pack-attention)")};
  Option<bool> cachedAttention{
      *this, "cached-attention",
      llvm::cl::desc("What call-pack-attention calls cached")};
};

/// What the frontend made -> the import level, simplified. The contract is
/// checked first, because what follows relies on it, and last, because the next
/// level does. Composites are searched between two simplifications, the first
/// to bring exporters' spellings to one form, the second to clear away what the
/// composites replaced. Precision is lowered behind them: composites are
/// recognised, and constants folded, as f32. Layouts come last: that of images
/// sees where they are bf16, that of attention what transpositions are left.
/// The way of the labels is followed when all that is on it is simple.
void buildImportPipeline(mlir::OpPassManager &pm,
                         const ImportPipelineOptions &options);

struct StagedPipelineOptions
    : mlir::PassPipelineOptions<StagedPipelineOptions> {
  Option<int64_t> stages{*this, "stages", llvm::cl::init(1),
                         llvm::cl::desc("Number of stages of the model")};
  Option<std::string> balance{*this, "balance", llvm::cl::init("flops"),
                              llvm::cl::desc("See pipe-partition-stages")};
  ListOption<int64_t> stageMemory{
      *this, "stage-memory",
      llvm::cl::desc("memory-limit of pipe-partition-stages")};
  ListOption<int64_t> rankOfStage{
      *this, "rank-of-stage",
      llvm::cl::desc("rank-of-stage of pipe-partition-stages")};
  Option<std::string> remat{*this, "remat", llvm::cl::init("none"),
                            llvm::cl::desc("pointwise (see "
                                           "pipe-differentiate), or a mode of "
                                           "pipe-rematerialize; for all "
                                           "stages, or one for each")};
  Option<int64_t> copies{*this, "copies", llvm::cl::init(1),
                         llvm::cl::desc("Copies of the model, as the schedule "
                                        "needs it")};
  Option<bool> formKernels{
      *this, "form-kernels", llvm::cl::init(true),
      llvm::cl::desc("Off: the level reads as nn ops, for people and for "
                     "passes that change it; kernels are formed behind it")};
  Option<bool> earlyRecompute{
      *this, "early-recompute",
      llvm::cl::desc("What backwards recompute before they need a gradient are "
                     "tasks of their own (pipe-split-recompute)")};
  Option<bool> splitBackward{
      *this, "split-backward",
      llvm::cl::desc("Backwards in two halves, for schedules that run them as "
                     "tasks of their own")};
  Option<bool> wholeStash{
      *this, "whole-stash",
      llvm::cl::desc("Stashes in one range, for schedules that move them "
                     "(pipe-split-backward)")};
  Option<std::string> epilogues{
      *this, "epilogues",
      llvm::cl::desc("What products of GPUs do beside multiplying "
                     "(call-fuse-epilogues); empty for CPUs")};
  Option<int64_t> architecture{
      *this, "architecture", llvm::cl::init(90),
      llvm::cl::desc("Decides epilogues that are 'auto'")};
};

/// Import level -> staged level. Cutting comes before differentiation, so that
/// each stage is differentiated by itself and what crosses a cut is a forward
/// value. Epilogues are taken from kernels, so before these are formed; so are,
/// without them, transpositions that products share. Kernels are formed before
/// rematerialization, so that a recomputed value comes from the very kernel
/// that made it first, to the bit; rematerialization needs to know what the
/// backward uses. A backward is split after that, so that its halves call the
/// kernels of the whole, and a second copy of the model is made of finished
/// stages. Repeated code is merged where nothing can move between stages.
void buildStagedPipeline(mlir::OpPassManager &pm,
                         const StagedPipelineOptions &options);

/// Kernels of a staged level that was left without them (`form-kernels` off),
/// so that stages can be changed while they read as nn ops. A backward that the
/// schedule wants in halves is split behind that, so that whoever changes it
/// does so in one place. Rematerialization came before: what it repeats is in
/// kernels of its own.
void buildKernelsOfStages(mlir::OpPassManager &pm,
                          const StagedPipelineOptions &options);

struct UnrolledPipelineOptions
    : mlir::PassPipelineOptions<UnrolledPipelineOptions> {
  Option<bool> draft{*this, "draft",
                     llvm::cl::desc("For plans that are only compared: the "
                                    "level is not verified")};
};

/// Staged level -> unrolled level. From here on nobody changes what a task
/// computes, only when and where.
void buildUnrolledPipeline(mlir::OpPassManager &pm,
                           const UnrolledPipelineOptions &options);

struct ScheduledPipelineOptions
    : mlir::PassPipelineOptions<ScheduledPipelineOptions> {
  Option<std::string> policy{*this, "policy", llvm::cl::init("1f1b"),
                             llvm::cl::desc("See pipe-schedule")};
  Option<int64_t> ranks{*this, "ranks", llvm::cl::init(1),
                        llvm::cl::desc("Number of ranks")};
  Option<std::string> offload{*this, "offload", llvm::cl::init("none"),
                              llvm::cl::desc("See pipe-schedule")};
  Option<std::string> tiedWeights{
      *this, "tied-weights", llvm::cl::init("all-reduce"),
      llvm::cl::desc("See pipe-synchronize-weights")};
  Option<bool> copiesLast{*this, "copies-last",
                          llvm::cl::desc("See pipe-synchronize-weights")};
  Option<int64_t> sumGroups{*this, "sum-groups", llvm::cl::init(0),
                            llvm::cl::desc("See pipe-fold-gradients")};
  Option<int64_t> zeroBuffers{
      *this, "zero-buffers", llvm::cl::init(2),
      llvm::cl::desc("See ranges of pipe-share-gradients and "
                     "pipe-gather-weights")};
  Option<bool> draft{*this, "draft",
                     llvm::cl::desc("For plans that are only compared: the "
                                    "level is not verified")};
};

/// Unrolled level -> scheduled level. Who updates tied weights depends on the
/// ranks of their stages; what a replica has summed is then summed over all
/// replicas. Transfers follow from the order of tasks, so they
/// come after it.
void buildScheduledPipeline(mlir::OpPassManager &pm,
                            const ScheduledPipelineOptions &options);

struct AllocatedPipelineOptions
    : mlir::PassPipelineOptions<AllocatedPipelineOptions> {
  Option<bool> assignStreams{
      *this, "assign-streams",
      llvm::cl::desc("For targets with streams: events on posts and between "
                     "the other ops of a rank (pipe-assign-streams)")};
  Option<bool> draft{*this, "draft",
                     llvm::cl::desc("For plans that are only compared: the "
                                    "level is not verified, and has no streams "
                                    "yet")};
};

/// Scheduled level -> allocated level. Lives of buffers are known only now
/// that each rank's list is final, and with them the kernels of updates, which
/// depend on sizes in the arena. Streams come last: which of them share bytes
/// depends on where the buffers are. Nothing changes the module after that.
void buildAllocatedPipeline(mlir::OpPassManager &pm,
                            const AllocatedPipelineOptions &options);

/// The options of all levels. A copy has the same values.
struct PipelineOptions {
  ImportPipelineOptions import;
  StagedPipelineOptions staged;
  UnrolledPipelineOptions unrolled;
  ScheduledPipelineOptions scheduled;
  AllocatedPipelineOptions allocated;

  PipelineOptions() = default;
  PipelineOptions(const PipelineOptions &other) { *this = other; }
  PipelineOptions &operator=(const PipelineOptions &other);

  /// For plans that are only compared.
  void setDraft(bool isDraft) {
    unrolled.draft = isDraft;
    scheduled.draft = isDraft;
    allocated.draft = isDraft;
  }
};

/// Under the names `pipewright-import`, `-staged`, `-unrolled`, `-scheduled`
/// and `-allocated`.
void registerPipelines();

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H
