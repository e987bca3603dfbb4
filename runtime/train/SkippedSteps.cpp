//===- SkippedSteps.cpp - Steps that change nothing -----------------------===//
//
// Kernels of updates leave weights and states alone. Running statistics have
// been changed by forwards, before anybody knew: they are copied first.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SkippedSteps.h"

using namespace pipewright::runtime;

/// Calls `visit` with each running statistic of a rank, and what else of the
/// model may change in a step and is not trained.
template <class Visit>
static void forEachStatistic(const Worker &rank, Visit visit) {
  for (const TensorInfo &tensor : rank.program().tensors)
    if (tensor.role == Role::State)
      visit(tensor.buffer);
}

void SkippedSteps::begin() {
  rank.setSkippedUpdates(skipped);
  if (!rank.skipsNan())
    return;
  int64_t bytes = 0;
  forEachStatistic(rank, [&](Buffer each) { bytes += each.bytes; });
  statistics.resize(bytes);
  char *to = statistics.data();
  forEachStatistic(rank, [&](Buffer each) {
    rank.read(each, to);
    to += each.bytes;
  });
}

bool SkippedSteps::end() {
  if (!rank.skippedBecause())
    return false;
  const char *from = statistics.data();
  forEachStatistic(rank, [&](Buffer each) {
    rank.write(each, from);
    from += each.bytes;
  });
  ++skipped;
  ++here;
  return true;
}

std::string SkippedSteps::message(int64_t step) const {
  return "warning: step " + std::to_string(step) +
         " is skipped: the gradient of '" + rank.skippedBecause() +
         "' has values that are no finite numbers";
}

std::string SkippedSteps::summary() const {
  return here == 0 ? ""
                   : "warning: " + std::to_string(here) +
                         (here == 1 ? " step was" : " steps were") +
                         " skipped, as gradients had values that are no finite "
                         "numbers";
}
