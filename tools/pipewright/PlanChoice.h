//===- PlanChoice.h - The fastest of all plans ------------------*- C++ -*-===//
//
// What `--schedule auto` means for a model: of all schedules that may be chosen
// and all numbers of stages, the plan with the shortest predicted step; of
// equal ones, the one that keeps least. What a memory limit forbids is no plan.
// The steps that are compared are the
// very ones that plans print.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H

#include "tools/pipewright/Options.h"

namespace pipewright::tool {

/// Steps that differ by less are equal: sums of the same times in another order
/// differ in their last digits.
inline bool isShorterStep(double a, double b) { return a < b * (1 - 1e-9); }

/// Whether an arena has more bytes than its rank may have.
bool isBeyondLimit(pipe::ArenaOp arena, const CompileOptions &options);

/// The bytes of the largest arena of a module at the allocated level.
int64_t fullestArena(mlir::ModuleOp allocated);

/// Puts the best plan's schedule, halves of backwards and stages into the
/// options, where they ask for a choice. `imported` is at the import level,
/// with all attributes, and stays as it is. Where no plan is possible the
/// options stay, too: compiling with them says why.
void choosePlan(mlir::ModuleOp imported, CompileOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
