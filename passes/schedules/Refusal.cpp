//===- Refusal.cpp - Why a schedule is refused ----------------------------===//
//
// See Refusal.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Refusal.h"

#include <algorithm>
#include <cassert>

using namespace pipewright;

std::vector<int32_t>
schedules::findWaitCycle(llvm::ArrayRef<int32_t> waitsFor) {
  int32_t rank = 0;
  while (waitsFor[rank] < 0)
    ++rank;
  std::vector<bool> seen(waitsFor.size());
  while (!seen[rank]) {
    seen[rank] = true;
    rank = waitsFor[rank];
    assert(rank >= 0 && "a waiting rank waits for a finished one");
  }
  std::vector<int32_t> cycle;
  for (int32_t start = rank; cycle.empty() || rank != start;
       rank = waitsFor[rank])
    cycle.push_back(rank);
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()),
              cycle.end());
  return cycle;
}

std::string schedules::joinCycle(size_t parts, const char *separator,
                                 llvm::function_ref<std::string(size_t)> tell) {
  // A cycle over a thousand ranks repeats itself; its ends tell enough.
  constexpr size_t head = 6, tail = 2;
  std::string text;
  for (size_t i = 0; i < parts; ++i) {
    if (i > 0)
      text += separator;
    if (parts > head + tail + 1 && i == head) {
      text += "... (" + std::to_string(parts - head - tail) +
              " more ranks wait likewise)" + separator;
      i = parts - tail;
    }
    text += tell(i);
  }
  return text;
}
