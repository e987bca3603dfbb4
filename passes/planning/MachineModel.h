//===- MachineModel.h - What a rank computes with ---------------*- C++ -*-===//
//
// One model for what is decided and for what is predicted. Decisions are made
// for a named machine, whose figures are the same on every host, so that a
// program is the same whoever compiles it; CPU programs are predicted for the
// machine at hand, which is measured.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace pipewright {

/// What matrix products and convolutions compute in. Tf32 is f32 of which they
/// read 10 bits; with BF16, weights and sums stay f32.
enum class Precision { F32, Tf32, BF16 };

/// The word of the command line.
llvm::StringRef nameOf(Precision precision);

/// What one rank computes with. The defaults are one core of a CPU of 2020.
struct MachineModel {
  /// Operations per second of large matrix products and of convolutions.
  double matmulFlops = 60e9;
  double convolutionFlops = 60e9;
  /// The same of attention's small products with a softmax between them.
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
  /// The machine of that name, such as `cpu`, `h100-f32` or `h100-bf16`; none
  /// where nobody knows it.
  static std::optional<MachineModel> named(llvm::StringRef name);
  /// All names, as a sentence lists them.
  static std::string names();
};

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H
