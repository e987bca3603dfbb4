//===- PipeDream.cpp - An update after every backward -----------*- C++ -*-===//
//
// Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN
// Training", SOSP 2019, sections 3.2 and 3.3: the order of 1F1B, but each
// micro-batch is a mini-batch of its own, and its gradient updates the weights
// of a stage at once. A forward reads the newest weights of its stage; they
// are stashed until its backward, which reads the same. 4 ranks, 6
// micro-batches, with an update, not drawn, after every B:
//
//   rank 0 | F0 F1 F2 F3          B0 F4 B1 F5 B2    B3    B4    B5
//   rank 1 |    F0 F1 F2       B0 F3 B1 F4 B2 F5 B3    B4    B5
//   rank 2 |       F0 F1    B0 F2 B1 F3 B2 F4 B3 F5 B4    B5
//   rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5
//
// What it computes, exactly. Say that the model has seen all updates of the
// steps before this one, and w(s, u) are the weights of stage s after u updates
// of this step. Micro-batch m reads w(s, max(0, m - (P-1-s))) in the forward
// and in the backward of stage s: on the last stage those that micro-batch m-1
// has left, on the first those of P-1 micro-batches before. With the gradient
// g(s, m) of micro-batch m's own loss at these weights,
//
//   w(s, m+1) = update(w(s, m), g(s, m))   for m = 0, ..., M-1,
//
// so a rank keeps up to P-r versions of its weights. Stages of one forward read
// different versions; the paper's option "vertical sync", which makes them the
// same, is not here. On one rank it is plain training on single micro-batches.
//
// A step of the program is a window of M mini-batches, and the pipeline drains
// at its end. The authors' runtime drains once per epoch, so the first P-1
// micro-batches of every window here read newer weights than theirs would. The
// longer the window, the smaller the difference, and the bubble.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/NoFlush.h"
#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class PipeDream final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "pipedream"; }
  llvm::StringRef summary() const override {
    return "1f1b with an update after every micro-batch; stale weights are "
           "stashed";
  }
  llvm::StringRef paper() const override {
    return "Narayanan et al., SOSP 2019, sections 3.2 and 3.3 (arXiv "
           "1806.03377)";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tB) once per step of M updates";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(P-r, M) stashes and min(P-r, M) versions of the weights on "
           "rank r";
  }
  WeightRule weightRule() const override { return WeightRule::Newest; }
  int64_t updates(const ScheduleOptions &options) const override {
    return options.microBatches;
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(options.ranks - rank, options.microBatches);
  }

protected:
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    return orderWithoutFlush(schedule, rank);
  }
};

} // namespace

const Policy &pipewright::schedules::pipeDreamPolicy() {
  static const PipeDream policy;
  return policy;
}
