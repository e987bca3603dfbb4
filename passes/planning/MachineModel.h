//===- MachineModel.h - What a rank computes with ---------------*- C++ -*-===//
//
// One model for what is decided and for what is predicted: a core, or a GPU,
// for each rank. Programs are the same whoever compiles them, because their
// decisions are made for a named machine (NamedMachines.h) whose figures are
// the same on every host; only schedules that plan with times are made for the
// machine that they are predicted for. For CPUs that is the machine at hand,
// measured once (MachineFile.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H

#include "runtime/core/Mesh.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// What matrix products and convolutions compute in. Tf32 is f32 of which they
/// read 10 bits; with BF16, weights and sums stay f32.
enum class Precision { F32, Tf32, BF16 };

llvm::ArrayRef<Precision> allPrecisions();
/// The word of the command line.
llvm::StringRef nameOf(Precision precision);

struct MachineFigure;

/// Processes of a machine, by number from `first` to `last`, whose ranks have
/// some other figures.
struct OtherRanks {
  int64_t first = 0, last = 0;
  /// Which ones, each once and of those that ranks have (`isOfRank`).
  std::vector<std::pair<const MachineFigure *, double>> figures;

  static constexpr int64_t mostPlaces = 1 << 20;
  /// Of kinds of ranks in a machine.
  static constexpr size_t mostKinds = 1024;

  bool overlaps(const OtherRanks &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// What one rank computes with. The defaults are one core of a CPU of 2020.
struct MachineModel {
  /// Operations per second of large matrix products and of convolutions.
  double matmulFlops = 60e9;
  /// Processors that share one product, tile by tile (ProductTime.h); 1: none
  /// do, and all products have one rate.
  double processors = 1;
  double convolutionFlops = 60e9;
  /// The same of attention's small products with a softmax between them.
  double attentionFlops = 25e9;
  /// Bytes per second that a pointwise kernel reads and writes.
  double bandwidth = 12e9;
  /// Seconds per random number of a dropout.
  double secondsPerRandom = 0.6e-9;
  /// Seconds that a call takes whatever it does.
  double secondsPerCall = 2e-6;
  /// Between ranks of one host: a copy in memory.
  double linkLatency = 5e-6;
  double linkBandwidth = 8e9;
  /// Ranks of one host, and what is between those of two: a rank's share of the
  /// network, in one direction.
  double hostRanks = 1 << 20;
  double networkLatency = 50e-6;
  double networkBandwidth = 1.25e9;
  /// Between a GPU and its host's memory, in one direction, both at once: what
  /// copies reach over PCIe 4.0 with 16 lanes (31.5 GB/s), unless said.
  double hostBandwidth = 25e9;
  /// Bytes that a rank has there for stashes: its share of the host's memory.
  double hostMemory = unknownMemory;
  /// Bytes that a rank has for its arena.
  double memory = unknownMemory;
  /// Ranks that are not like the rest; no place is in two of them.
  std::vector<OtherRanks> others = {};

  static constexpr double unknownMemory = 1ull << 60;

  /// Whether all figures are the same, those of other ranks aside.
  bool isLike(const MachineModel &other) const;
  /// Whether it has ranks of several kinds.
  bool isUneven() const { return !others.empty(); }
  /// With what a rank of the mesh computes, and all alike: with several
  /// replicas, each figure the worst of the copies of that rank, as who is
  /// ready first waits for the others.
  MachineModel ofRank(int64_t rank, const runtime::Mesh &mesh) const;
  /// With each figure the best of all ranks, and all alike: no rank is faster.
  MachineModel ofBestRank() const;
};

/// One of a machine's figures. All are above zero.
struct MachineFigure {
  /// As files and attributes have it.
  llvm::StringLiteral name;
  double MachineModel::*place;
  llvm::StringLiteral unit;
  /// `large matrix products`
  llvm::StringLiteral meaning;
  /// Whether some ranks may have another one.
  bool isOfRank = false;
  /// Whether it is a whole number.
  bool isCount = false;
  /// Whether files need not have it.
  bool isOptional = false;

  /// Whether a machine has it: an optional one may not be known.
  bool isKnown(const MachineModel &machine) const {
    return !isOptional || machine.*place != MachineModel().*place;
  }
  /// Of two numbers the one with which nothing takes longer.
  double better(double a, double b) const;
  double worse(double a, double b) const;
};

/// All of them, in the order of their members.
llvm::ArrayRef<MachineFigure> machineFigures();
/// The one of that name; null where there is none.
const MachineFigure *findMachineFigure(llvm::StringRef name);

/// What a machine has of each precision that it has figures for.
using MachineModels = std::map<Precision, MachineModel>;

/// Measures one core of this machine for some 0.2 s, with the matrix product of
/// the library that programs will use where it can be loaded.
MachineModels measureCore(llvm::ArrayRef<Precision> precisions);

/// The cores of this machine that this process may use.
int64_t countCores();

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINEMODEL_H
