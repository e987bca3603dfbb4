// 1F1B with some forwards more before the first backward: slower links are
// hidden, for as many stashes more. 3 ranks, 4 micro-batches, extra=1:
//
//   rank 0 | F0 F1 F2 F3       B0    B1    B2 B3
//   rank 1 |    F0 F1 F2    B0 F3 B1    B2 B3
//   rank 2 |       F0 F1 B0 F2 B1 F3 B2 B3

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "passes/schedules/Policy.h"

using namespace pipewright::schedules;

struct Patient : Policy {
  llvm::StringRef name() const override { return "patient"; }
  llvm::StringRef summary() const override { return "1f1b, but runs ahead"; }
  llvm::StringRef paper() const override { return "an example, no paper"; }
  llvm::StringRef bubbleFormula() const override { return "(P-1)(tF+tB)"; }
  llvm::StringRef memoryFormula() const override { return "P-r+extra stashes"; }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static const PolicyParameter all[] = {{"extra", "forwards more (1)"}};
    return all;
  }
  int64_t maxInFlight(const ScheduleOptions &o, int64_t rank) const override {
    return std::min(o.ranks - rank + o.parameter("extra", 1), o.microBatches);
  }
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 1))
      return error;
    return linearPlacement(options.stages, options.ranks);
  }
  std::vector<Task> orderOfRank(const Schedule &, const ScheduleOptions &o,
                                int32_t rank) const override {
    std::vector<Task> order;
    for (int32_t f = 0, b = 0; b < o.microBatches; ++b) {
      for (; f < o.microBatches && f - b < maxInFlight(o, rank); ++f)
        order.push_back(Task::forward(rank, f));
      order.push_back(Task::backward(rank, b));
    }
    return order;
  }
};

static const Patient patient;
extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "patient", LLVM_VERSION_STRING,
          [] { registerPolicy(patient); }};
}
