//===- CostModel.h - How long tasks take on this machine --------*- C++ -*-===//
//
// Times from operation counts and bytes, for predictions only: no choice that
// changes numbers depends on them, so a program is the same whoever compiles
// it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_COSTMODEL_H
#define PIPEWRIGHT_PASSES_PLANNING_COSTMODEL_H

#include "dialects/pipe/PipeDialect.h"
#include "passes/schedules/Simulator.h"

namespace pipewright {

/// What matrix products and convolutions compute in. Tf32 is f32 of which they
/// read 10 bits; with BF16, weights and sums stay f32.
enum class Precision { F32, Tf32, BF16 };

/// The word of the command line.
llvm::StringRef nameOf(Precision precision);

/// What one rank computes with.
struct MachineModel {
  /// Operations per second of large matrix products and of convolutions.
  double matmulFlops = 60e9;
  double convolutionFlops = 60e9;
  /// Of attention's small products with a softmax between them.
  double attentionFlops = 25e9;
  /// Bytes per second that a pointwise kernel reads and writes.
  double bandwidth = 12e9;
  /// Seconds per random number of a dropout.
  double secondsPerRandom = 0.6e-9;
  /// Seconds that a call takes whatever it does.
  double secondsPerCall = 2e-6;
  /// Between ranks: a copy in memory.
  double linkLatency = 5e-6;
  double linkBandwidth = 8e9;
  /// Cores that the ranks share.
  int64_t cores = 1;

  /// Measures this machine for some 30 ms, with the matrix product of the
  /// library that programs will use where it can be loaded.
  static MachineModel measure(Precision precision = Precision::F32);
  /// One H100 for each rank, joined by NVLink: what large calls reach there,
  /// from published figures.
  static MachineModel h100(Precision precision);
};

/// Counts of one body of a stage.
struct BodyWork {
  int64_t flops = 0;
  double seconds = 0;
};

/// The work of a body: nn ops, or launches of kernels whose bodies are in the
/// module.
BodyWork workOf(mlir::Region &body, const MachineModel &machine);

/// Fills in what a micro-batch keeps on the rank of a stage between its tasks:
/// the stash, inputs and outputs that gradients read, and, until W, what W
/// reads of these, of the gradients received and of the handover.
void countKeptBytes(pipe::StageOp stage, schedules::StageCosts &costs);

/// Times of each stage's tasks, and what is kept between them.
schedules::TaskCosts predictCosts(mlir::ModuleOp module,
                                  const MachineModel &machine);

/// The step time of a simulation on a machine that may have fewer cores than
/// the plan has ranks.
double predictStepSeconds(const schedules::Simulation &simulation,
                          const MachineModel &machine);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_COSTMODEL_H
