//===- Pipelines.h - From one level to the next -----------------*- C++ -*-===//
//
// One function for each level of DESIGN's picture. Each ends with the pass that
// verifies the level it makes, so a mistake is found where it was made.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H
#define PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

#include <string>

namespace pipewright {

struct ImportPipelineOptions {
  bool noDropout = false;
  /// Whether to compute in bf16 (nn-lower-precision).
  bool bf16 = false;
  /// See nn-pad-vocabulary; a multiple of 1 pads nothing.
  int64_t vocabularyMultiple = 1, leastVocabulary = 4096;
  /// Whether images have their channels last (nn-channels-last).
  bool channelsLast = false;
  /// Whether attention reads by strides (nn-pack-attention).
  bool packAttention = false;
};

/// What the frontend made -> the import level, simplified. The contract is
/// checked first, because what follows relies on it; composites are searched
/// between two simplifications, the first to bring exporters' spellings to one
/// form, the second to clear away what the composites replaced. Precision is
/// lowered behind them: composites are recognised, and constants folded, as
/// f32. Layouts come last: that of images sees where they are bf16, that of
/// attention what transpositions are left. The way of the labels is followed
/// when all that is on it is simple.
void buildImportPipeline(mlir::OpPassManager &pm,
                         const ImportPipelineOptions &options);

struct StagedPipelineOptions {
  int64_t stages = 1;
  std::string balance = "flops";
  std::string remat = "none";
  /// Of the model, as the schedule needs it.
  int64_t copies = 1;
  /// Off: the level reads as nn ops, for people; nothing can follow it.
  bool formKernels = true;
  /// Whether the schedule has I and W tasks.
  bool splitBackward = false;
  /// For GPUs: what products do beside multiplying (nn-fuse-epilogues), and the
  /// architecture that decides it where that is `auto`. Empty for CPUs.
  std::string epilogues;
  int64_t architecture = 90;
};

/// Import level -> staged level. Cutting comes before differentiation, so that
/// each stage is differentiated by itself and what crosses a cut is a forward
/// value. Epilogues are taken from kernels, so before these are formed. Kernels
/// are formed before rematerialization, so that a recomputed
/// value comes from the very kernel that made it first, to the bit;
/// rematerialization needs to know what the backward uses. A backward is split
/// after that, so that its halves call the kernels of the whole, and a second
/// copy of the model is made of finished stages. Repeated code is merged where
/// nothing can move between stages.
void buildStagedPipeline(mlir::OpPassManager &pm,
                         const StagedPipelineOptions &options);

/// Staged level -> unrolled level. From here on nobody changes what a task
/// computes, only when and where.
void buildUnrolledPipeline(mlir::OpPassManager &pm);

struct ScheduledPipelineOptions {
  std::string policy = "1f1b";
  int64_t ranks = 1;
  /// Whether both holders of a tied weight update it
  /// (pipe-all-reduce-tied-weights), or its owner for both.
  bool allReduceTiedWeights = true;
};

/// Unrolled level -> scheduled level. Who updates tied weights depends on the
/// ranks of their stages. Transfers follow from the order of tasks, so they
/// come after it.
void buildScheduledPipeline(mlir::OpPassManager &pm,
                            const ScheduledPipelineOptions &options);

struct AllocatedPipelineOptions {
  /// For targets with streams (cuda): `event` on posts, `pipe.record_event` and
  /// `pipe.wait_event` between the other ops of a rank.
  bool assignStreams = false;
};

/// Scheduled level -> allocated level. Lives of buffers are known only now
/// that each rank's list is final. Streams come last: which of them share bytes
/// depends on where the buffers are.
void buildAllocatedPipeline(mlir::OpPassManager &pm,
                            const AllocatedPipelineOptions &options = {});

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PIPELINES_PIPELINES_H
