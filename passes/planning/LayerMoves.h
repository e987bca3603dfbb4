//===- LayerMoves.h - Cuts that are better by moving layers -----*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_LAYERMOVES_H
#define PIPEWRIGHT_PASSES_PLANNING_LAYERMOVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace pipewright {

/// What a cut comes to; infinite where there is no such plan.
struct CutEstimate {
  double step = std::numeric_limits<double>::infinity();
  /// Of the fullest rank.
  double bytes = std::numeric_limits<double>::infinity();
};

/// A local search: begins with so many layers in each stage, and moves one from
/// a stage to another as long as the step gets shorter and the fullest rank no
/// fuller than in the beginning. Estimates at most `budget` cuts. The layers of
/// each stage of the best cut, from which no single move leads to a better one
/// unless the budget was used up; none where no better one was found.
std::optional<std::vector<int64_t>>
moveLayers(std::vector<int64_t> layers, int64_t budget,
           llvm::function_ref<CutEstimate(llvm::ArrayRef<int64_t>)> estimate);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_LAYERMOVES_H
