//===- NamedMachines.h - Machines that are known by name --------*- C++ -*-===//
//
// What plans can be made for without the machine: figures from data sheets and,
// where a comment says so, from measurements.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_NAMEDMACHINES_H
#define PIPEWRIGHT_PASSES_PLANNING_NAMEDMACHINES_H

#include "passes/planning/MachineModel.h"

namespace pipewright {

struct NamedMachine {
  /// `h100`
  llvm::StringLiteral name;
  /// A line for people: what a rank is, how many are in a host, and where the
  /// figures are from.
  llvm::StringLiteral summary;
  /// What it has figures for.
  llvm::ArrayRef<Precision> precisions;
  MachineModel (*make)(Precision);
};

llvm::ArrayRef<NamedMachine> namedMachines();

/// The figures of `NAME[-PRECISION][xN]`: of one precision, if it is said, and
/// with hosts of N ranks. Of a name with a dash in it the first part is enough
/// where one machine alone begins so (`a100`). Empty where nobody knows it.
MachineModels machinesNamed(llvm::StringRef name);

/// The same of a name that has one set of figures, such as `cpu`, `p100` or
/// `h100-bf16`; none of any other.
std::optional<MachineModel> machineNamed(llvm::StringRef name);

/// All names, as a sentence lists them: `cpu, h100 or p40`.
std::string namesOfMachines();

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_NAMEDMACHINES_H
