//===- StageEstimates.cpp - What stages cost before they are made ---------===//

#include "passes/pipelines/StageEstimates.h"

#include "dialects/pipe/PipeDialect.h"
#include "passes/step/CostModel.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace mlir;

namespace pipewright {

std::optional<StageEstimates>
StageEstimates::of(ModuleOp imported, const StagedPipelineOptions &options,
                   const MachineModel &machine) {
  OwningOpRef<ModuleOp> module = imported.clone();
  const int64_t count = numberOps(*module);
  FailureOr<int64_t> layers = pipe::countLayers(*module);
  if (failed(layers) || *layers < 2)
    return std::nullopt;
  // Behind the first layer all gradients of inputs are needed. To choose what a
  // stage keeps takes long where it has many layers.
  constexpr int64_t most = 24;
  llvm::SmallVector<std::string> layersOfStages = {"1"};
  for (int64_t rest = *layers - 1; rest > 0; rest -= most)
    layersOfStages.push_back(std::to_string(std::min(rest, most)));
  StagedPipelineOptions staged;
  staged.copyOptionValuesFrom(options);
  staged.stages = layersOfStages.size();
  staged.balance = "manual:" + llvm::join(layersOfStages, ",");
  staged.rankOfStage = {};
  staged.stageMemory = {};
  staged.splitBackward = true;
  staged.formKernels = true;
  PassManager pm(imported.getContext());
  pm.enableVerifier(false);
  buildStagedPipeline(pm, staged);
  if (failed(pm.run(*module)))
    return std::nullopt;
  StageEstimates estimates;
  estimates.ops = costsOfOps(*module, count, machine);
  const llvm::StringRef remat = options.remat;
  estimates.recomputes =
      remat != "none" && remat != "pointwise" && remat != "selective";
  estimates.choosesKept = remat.starts_with("keep:");
  return estimates;
}

std::vector<double> StageEstimates::secondsOfOps() const {
  std::vector<double> seconds;
  for (const OpCost &op : ops)
    seconds.push_back(op.forward + op.backward + op.recompute);
  return seconds;
}

static void add(OpCost &sum, const OpCost &op) {
  sum.forward += op.forward;
  sum.backward += op.backward;
  sum.inputGradient += op.inputGradient;
  sum.weightGradient += op.weightGradient;
  sum.recompute += op.recompute;
  sum.keptBytes += op.keptBytes;
  sum.weightKeptBytes += op.weightKeptBytes;
}

static schedules::StageCosts costsOf(OpCost sum, int64_t stage,
                                     int64_t received) {
  // Never zero, as in the costs of stages.
  auto seconds = [](double sum) { return std::max(1e-7, sum); };
  // Nobody waits for what the first stage does, and it keeps what it has.
  if (stage == 0) {
    sum.weightGradient += sum.inputGradient;
    sum.inputGradient = 0;
    sum.weightKeptBytes = std::min(sum.weightKeptBytes, sum.keptBytes);
  }
  schedules::StageCosts costs;
  costs.forward = seconds(sum.forward);
  costs.backward = seconds(sum.backward);
  costs.inputGradient = seconds(sum.inputGradient);
  costs.weightGradient = seconds(sum.weightGradient);
  costs.recomputesEarly = sum.recompute > 0;
  costs.recompute =
      costs.recomputesEarly ? seconds(sum.recompute) : costs.forward;
  costs.stashBytes = std::max(static_cast<int64_t>(sum.keptBytes), received);
  costs.weightStashBytes = static_cast<int64_t>(sum.weightKeptBytes);
  return costs;
}

schedules::TaskCosts StageEstimates::ofCut(const pipe::CutModel &cut,
                                           schedules::TaskCosts links) const {
  std::vector<OpCost> sums(cut.weightBytes.size());
  std::vector<std::array<double, 2>> mostKept(sums.size(), {0, 0});
  for (auto [op, stage] : llvm::zip_equal(ops, cut.stageOfOp)) {
    if (stage < 0)
      continue;
    add(sums[stage], op);
    auto &[most, next] = mostKept[stage];
    next = std::max(next, std::min(most, op.keptBytes));
    most = std::max(most, op.keptBytes);
  }
  // Where runs of layers begin with the stage there may be one less, and what
  // comes before the first one is given.
  if (recomputes && !choosesKept)
    for (auto [sum, most] : llvm::zip_equal(sums, mostKept))
      sum.keptBytes -= most[0] + most[1];
  // Nothing reads the last product of a stage there.
  for (auto [sum, layer] : llvm::zip_equal(sums, cut.lastLayers)) {
    if (!recomputes || layer < 0)
      continue;
    const double again = std::min(ops[layer].forward, ops[layer].backward / 2);
    sum.backward -= again;
    (sum.recompute >= again       ? sum.recompute
     : sum.inputGradient >= again ? sum.inputGradient
                                  : sum.weightGradient) -= again;
  }
  std::vector<int64_t> received(sums.size(), 0);
  for (const schedules::StageEdge &edge : cut.edges)
    received[edge.to] += edge.bytes;
  schedules::TaskCosts costs = std::move(links);
  for (auto [stage, sum] : llvm::enumerate(sums))
    costs.stages.push_back(costsOf(sum, stage, received[stage]));
  return costs;
}

} // namespace pipewright
