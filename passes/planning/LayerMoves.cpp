//===- LayerMoves.cpp - Cuts that are better by moving layers -------------===//
//
// See LayerMoves.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/LayerMoves.h"

std::optional<std::vector<int64_t>> pipewright::moveLayers(
    std::vector<int64_t> layers, int64_t budget,
    llvm::function_ref<CutEstimate(llvm::ArrayRef<int64_t>)> estimate) {
  // What is less is a matter of rounding.
  constexpr double least = 1e-4;
  if (budget < 1)
    return std::nullopt;
  CutEstimate best = estimate(layers);
  --budget;
  const double mostBytes = best.bytes;
  const auto count = static_cast<int64_t>(layers.size());
  bool isBetter = false;
  // Ends where no move since the last one that was made is better.
  for (int64_t move = 0, since = 0;
       since < count * count && budget > 0 && best.step > 0;
       move = (move + 1) % (count * count), ++since) {
    const int64_t from = move / count, to = move % count;
    if (from == to || layers[from] <= 1)
      continue;
    --layers[from];
    ++layers[to];
    const CutEstimate next = estimate(layers);
    --budget;
    if (next.step < best.step * (1 - least) && next.bytes <= mostBytes) {
      best = next;
      isBetter = true;
      since = -1; // The same move may be of use again.
      continue;
    }
    ++layers[from];
    --layers[to];
  }
  if (!isBetter)
    return std::nullopt;
  return layers;
}
