//===- Interleaved.cpp - 1F1B over several loops of stages ------*- C++ -*-===//
//
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", SC 2021 (arXiv 2104.04473), section 2.2.2; depth
// first, that is: a group of N micro-batches goes through all loops before the
// next group. 2 ranks, 2 loops, 4 micro-batches, cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1
//   rank 1 |      F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2
//      ...
//   rank 0 | B2.2      B2.3 B0.2 B0.3
//   rank 1 | F3.3 B3.3 B1.2 B1.3
//
// The bubble of 1F1B divided by the number of loops v, for v times the traffic.
// N is P by default, so few micro-batches are in flight; from N = 2P on, a hop
// no longer costs time per micro-batch, and N = M is almost breadth-first.
//
// Megatron's order, with its conditions on N and M, but without its one
// additional warm-up forward for overlapped expert communication; the same as
// PyTorch's ScheduleInterleaved1F1B, whose group is M / (M / P), rounded down.
// Where P does not divide M, the default here is the smallest group above P
// that Megatron's conditions allow, which is PyTorch's where PyTorch has one.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/DepthFirst.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class Interleaved final : public DepthFirstPolicy {
public:
  llvm::StringRef name() const override { return "interleaved"; }
  llvm::StringRef summary() const override {
    return "1f1b over several loops of stages; smaller bubble, more traffic";
  }
  llvm::StringRef paper() const override {
    return "Narayanan et al., SC 2021 (arXiv 2104.04473), section 2.2.2";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tB)/v, if M >= P";
  }
  llvm::StringRef memoryFormula() const override {
    return "2(P-r-1)+(v-1)N+1 stashes, each of one stage, on rank r, for "
           "groups of N micro-batches; at most v*M";
  }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return DepthFirst(options).numSlots() * (times.forward + times.backward());
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    DepthFirst steps(options);
    return std::min(warmUpOf(steps, rank) + 1, steps.numSteps());
  }

protected:
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    DepthFirst steps(options);
    int64_t warmUp = warmUpOf(steps, rank);
    std::vector<Task> order;
    order.reserve(2 * steps.numSteps() + steps.loops);
    for (int64_t step = 0; step < warmUp; ++step)
      order.push_back(steps.forward(step, rank));
    for (int64_t step = 0; step < steps.numSteps(); ++step) {
      if (warmUp + step < steps.numSteps())
        order.push_back(steps.forward(warmUp + step, rank));
      order.push_back(steps.backward(TaskKind::Backward, step, rank));
    }
    return order;
  }

private:
  static int64_t warmUpOf(const DepthFirst &steps, int64_t rank) {
    return std::min(2 * (steps.ranks - rank - 1) +
                        (steps.loops - 1) * steps.group,
                    steps.numSteps());
  }
};

} // namespace

const Policy &pipewright::schedules::interleavedPolicy() {
  static const Interleaved policy;
  return policy;
}
