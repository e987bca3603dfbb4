//===- CostModel.cpp - How long tasks take on this machine ----------------===//
//
// A roofline per call: matrix work at the rate of its library, everything else
// at the rate at which memory is read and written.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/CostModel.h"

#include "dialects/nn/NNOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace pipewright {

StringRef nameOf(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return "f32";
  case Precision::Tf32:
    return "tf32";
  case Precision::BF16:
    return "bf16";
  }
  llvm_unreachable("all precisions are listed");
}

MachineModel MachineModel::h100(Precision precision) {
  MachineModel machine;
  machine.matmulFlops = precision == Precision::F32    ? 50e12
                        : precision == Precision::Tf32 ? 350e12
                                                       : 700e12;
  machine.convolutionFlops = machine.matmulFlops / 2;
  // The kernel for f32 uses no tensor cores.
  machine.attentionFlops = precision == Precision::BF16 ? 350e12 : 15e12;
  machine.bandwidth = 2.8e12;
  machine.secondsPerRandom = 1e-12;
  machine.secondsPerCall = 3e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 300e9;
  machine.cores = std::numeric_limits<int64_t>::max();
  return machine;
}

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      bytes += pipe::byteSize(type);
  return bytes;
}

static int64_t flopsOf(Operation *op) {
  if (auto launch = dyn_cast<nn::LaunchOp>(op)) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        launch, launch.getKernel());
    int64_t flops = 0;
    if (kernel)
      kernel.walk(
          [&](nn::CostOpInterface inner) { flops += inner.getFlops(); });
    return flops;
  }
  if (auto cost = dyn_cast<nn::CostOpInterface>(op))
    return cost.getFlops();
  return 0;
}

/// Seconds of the arithmetic of one library call, beside its memory traffic.
static double arithmeticSeconds(Operation *op, int64_t flops,
                                const MachineModel &machine) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<nn::MatmulOp, nn::MatmulEpilogueOp>(
          [&](Operation *) { return flops / machine.matmulFlops; })
      .Case<nn::ConvOp, nn::ConvBackwardDataOp, nn::ConvBackwardWeightOp>(
          [&](Operation *) { return flops / machine.convolutionFlops; })
      .Case<nn::AttentionOp, nn::AttentionBackwardOp, nn::PackedAttentionOp,
            nn::PackedAttentionBackwardOp>(
          [&](Operation *) { return flops / machine.attentionFlops; })
      .Case<nn::DropoutOp>([&](nn::DropoutOp dropout) {
        return dropout.getResult().getType().getNumElements() *
               machine.secondsPerRandom;
      })
      .Default([&](Operation *) {
        // Compiled code does some dozen operations for each element it loads.
        return flops / (machine.bandwidth * 2);
      });
}

BodyWork workOf(Region &body, const MachineModel &machine) {
  BodyWork work;
  for (Operation &op : body.getOps()) {
    if (isa<nn::ViewOpInterface, nn::ParameterOp, nn::ConstantOp>(op) ||
        op.hasTrait<OpTrait::IsTerminator>())
      continue;
    int64_t flops = flopsOf(&op);
    work.flops += flops;
    double traffic = (bytesOf(op.getOperands()) + bytesOf(op.getResults())) /
                     machine.bandwidth;
    work.seconds += std::max(arithmeticSeconds(&op, flops, machine), traffic) +
                    machine.secondsPerCall;
  }
  return work;
}

/// What the arguments of a gradient body hold on to, gradients apart.
static int64_t savedBytes(pipe::StageOp stage,
                          pipe::GradientBodyInterface body) {
  ValueRange arguments = body->getRegion(0).getArguments();
  int64_t bytes = bytesOf(
      arguments.take_front(body.getInputs().size() + body.getOutputs().size()));
  // A stash is kept as a whole.
  if (!body.getStashFields().empty())
    bytes += bytesOf(stage.getForward().getReturn().getStash());
  return bytes;
}

void countKeptBytes(pipe::StageOp stage, schedules::StageCosts &costs) {
  pipe::GradientBodyInterface whole =
      stage.gradientBodyOf(pipe::TaskKind::backward);
  if (!whole)
    return;
  costs.stashBytes = savedBytes(stage, whole);
  pipe::GradientBodyInterface half =
      stage.gradientBodyOf(pipe::TaskKind::weight_gradient);
  if (!half)
    return;
  costs.weightStashBytes =
      savedBytes(stage, half) + bytesOf(stage.getHandover());
  ValueRange outputs = stage.getForward().getReturn().getValues();
  for (int64_t index : half.getGradientsOf())
    costs.weightStashBytes += bytesOf(outputs[index]);
}

schedules::TaskCosts predictCosts(ModuleOp module,
                                  const MachineModel &machine) {
  schedules::TaskCosts costs;
  costs.linkLatency = machine.linkLatency;
  costs.linkBandwidth = machine.linkBandwidth;
  llvm::StringMap<int64_t> optimized;
  for (auto arena : module.getOps<pipe::ArenaOp>())
    for (auto optimizer : arena.getOps<pipe::OptimizerOp>())
      optimized[optimizer.getStage()] =
          optimizer.getWeights().getBytes() *
          (4 + 2 * static_cast<int64_t>(optimizer.getStates().size()));
  for (auto stage : module.getOps<pipe::StageOp>()) {
    schedules::StageCosts cost;
    cost.forward = workOf(stage.getForward().getBodyRegion(), machine).seconds;
    cost.recompute = cost.forward;
    auto secondsOf = [&](pipe::TaskKind kind) {
      Operation *body = stage.bodyOf(kind);
      return body ? workOf(body->getRegion(0), machine).seconds : 0;
    };
    cost.backward = secondsOf(pipe::TaskKind::backward);
    // Before a backward is split, halves are as good a guess as any.
    bool isSplit = stage.getInputGradient() != nullptr;
    cost.inputGradient =
        isSplit ? secondsOf(pipe::TaskKind::input_gradient) : cost.backward / 2;
    cost.weightGradient = isSplit ? secondsOf(pipe::TaskKind::weight_gradient)
                                  : cost.backward / 2;
    cost.update = optimized.lookup(stage.getSymName()) / machine.bandwidth;
    countKeptBytes(stage, cost);
    costs.stages.push_back(cost);
  }
  return costs;
}

double predictStepSeconds(const schedules::Simulation &simulation,
                          const MachineModel &machine) {
  double busy = 0;
  for (const schedules::RankSummary &rank : simulation.ranks)
    busy += rank.busySeconds;
  return std::max(simulation.globalStepTime, busy / machine.cores);
}

} // namespace pipewright
