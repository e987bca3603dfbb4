//===- RunningStatistics.cpp - What forwards leave behind -----------------===//

#include "passes/step/RunningStatistics.h"

using namespace mlir;

namespace pipewright::pipe {

llvm::MapVector<StringAttr, std::optional<double>> decaysOf(StageOp stage) {
  llvm::MapVector<StringAttr, std::optional<double>> decays;
  auto write = [&](StringAttr weight, std::optional<double> decay) {
    std::optional<double> &left = decays.try_emplace(weight, 1.0).first->second;
    left = left && decay ? std::optional(*left * *decay) : std::nullopt;
  };
  for (Operation &op : *stage.getForward().getBody())
    if (auto assign = dyn_cast<nn::AssignStateOp>(op))
      write(assign.getWeightAttr().getAttr(),
            assign.getDecay()
                ? std::optional(assign.getDecay()->convertToDouble())
                : std::nullopt);
    else if (auto norm = dyn_cast<nn::BatchNormOp>(op))
      for (FlatSymbolRefAttr weight :
           {norm.getRunningMeanAttr(), norm.getRunningVarianceAttr()})
        if (weight)
          write(weight.getAttr(), norm.getMomentum().convertToDouble());
  return decays;
}

} // namespace pipewright::pipe
