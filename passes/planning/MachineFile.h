//===- MachineFile.h - What was measured of this machine --------*- C++ -*-===//
//
// The speed of one core is measured once and kept, so that every prediction on
// a machine is made with the same figures. The file is `machine-CPU.txt` in the
// folder of support/CacheFolder.h, CPU a hash of the processor's name: machines
// that share a home may differ. It has a line for each figure:
//
//   pipewright machine 1
//   f32 matmul_flops 51000000000
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_MACHINEFILE_H
#define PIPEWRIGHT_PASSES_PLANNING_MACHINEFILE_H

#include "passes/planning/MachineModel.h"

#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace pipewright {

/// The machine at hand, in each of the precisions that CPUs compute in.
struct MeasuredMachine {
  /// As the system names it: `Intel(R) Xeon(R) Processor @ 2.60GHz`.
  std::string processor;
  MachineModels models;
  /// Where it is kept; empty where there is no folder to keep it in.
  std::string path;
};

/// What the file has; measured and written where there is none, or where it
/// cannot be read as such. The same for all calls of a process. Without a
/// folder each process measures for itself.
const MeasuredMachine &measuredMachine();

/// Measures anew and replaces the file. Fails where it cannot be written.
llvm::Expected<MeasuredMachine> measureMachine();

/// The content of a file, and what it has the figures of; fails with what is
/// missing or no number above zero.
std::string writeMachine(const MeasuredMachine &machine);
llvm::Expected<MachineModels> readMachine(llvm::StringRef text);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_MACHINEFILE_H
