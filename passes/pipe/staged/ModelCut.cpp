//===- ModelCut.cpp - How an imported model would be cut ------------------===//

#include "passes/pipe/staged/ModelCut.h"

#include "dialects/nn/NNDevices.h"
#include "dialects/nn/NNLocation.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/ModelLayers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"

#include <memory>
#include <optional>

using namespace mlir;

namespace pipewright::pipe {

void setLayerTimes(ModuleOp module,
                   ArrayRef<std::pair<std::string, double>> times) {
  Builder builder(module.getContext());
  SmallVector<Attribute> all;
  for (const auto &[name, seconds] : times)
    all.push_back(builder.getArrayAttr(
        {builder.getStringAttr(name), builder.getF64FloatAttr(seconds)}));
  module->setAttr(PipeDialect::kLayerTimes, builder.getArrayAttr(all));
}

void setOpSeconds(ModuleOp module, ArrayRef<double> seconds) {
  if (seconds.empty())
    module->removeAttr(PipeDialect::kOpSeconds);
  else
    module->setAttr(PipeDialect::kOpSeconds,
                    DenseF64ArrayAttr::get(module.getContext(), seconds));
}

/// The analyzed model; null, with a diagnostic, where the module has none.
static std::unique_ptr<ModelOps> readModel(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("model");
  if (!function) {
    module.emitError("expects a function '@model', but has none");
    return nullptr;
  }
  auto model = std::make_unique<ModelOps>(function);
  return succeeded(model->analyze()) ? std::move(model) : nullptr;
}

FailureOr<std::vector<std::string>> namesOfLayers(ModuleOp module) {
  const std::unique_ptr<ModelOps> model = readModel(module);
  if (!model)
    return failure();
  SmallVector<Operation *> ops;
  llvm::copy_if(model->placed(), std::back_inserter(ops),
                [&](Operation *op) { return model->isNeededForLoss(op); });
  std::vector<std::string> names;
  for (const ModelLayer &layer : layersOf(ops))
    names.push_back(layer.name);
  return names;
}

FailureOr<int64_t> countLayers(ModuleOp module) {
  const std::unique_ptr<ModelOps> model = readModel(module);
  if (!model)
    return failure();
  int64_t ops = 0, layers = 0;
  for (Operation *op : model->placed()) {
    ops += model->isNeededForLoss(op);
    layers += model->isNeededForLoss(op) && isLayer(op);
  }
  return layers > 0 ? layers : ops;
}

/// By op of the model: its stage, or the first one that repeats it; none for
/// those that no stage needs.
static DenseMap<Operation *, int32_t> stagesOfAll(const ModelOps &model,
                                                  StageOfOp stageOf) {
  for (Operation &op : llvm::reverse(model.getFunction().getBody().front())) {
    if (!model.isRepeated(&op))
      continue;
    std::optional<int32_t> first;
    for (Operation *user : op.getUsers())
      if (auto stage = stageOf.find(user); stage != stageOf.end())
        first = std::min(first.value_or(stage->second), stage->second);
    if (first)
      stageOf[&op] = *first;
  }
  return stageOf;
}

/// The model, and where its ops would be; null, with a diagnostic, where it
/// cannot be cut so.
static std::unique_ptr<ModelOps> readCut(ModuleOp module, const StageCut &cut,
                                         StageOfOp &stageOf) {
  std::unique_ptr<ModelOps> model = readModel(module);
  if (!model)
    return nullptr;
  FailureOr<StageOfOp> assigned = assignStages(*model, cut);
  if (failed(assigned))
    return nullptr;
  stageOf = std::move(*assigned);
  return model;
}

FailureOr<CutModel> cutModel(ModuleOp module, const StageCut &cut) {
  StageOfOp stageOf;
  const std::unique_ptr<ModelOps> model = readCut(module, cut, stageOf);
  if (!model)
    return failure();
  CutModel result;
  result.weightBytes.assign(cut.stages, 0);
  result.layers.assign(cut.stages, 0);
  llvm::SetVector<std::pair<Value, int32_t>> crossing;
  // Of each weight, its bytes and the stages that read it.
  llvm::MapVector<Attribute, std::pair<int64_t, llvm::SmallSet<int32_t, 1>>>
      weights;
  for (Operation *op : model->placed()) {
    auto found = stageOf.find(op);
    if (found == stageOf.end())
      continue;
    const int32_t stage = found->second;
    result.layers[stage] += isLayer(op);
    for (Value operand : op->getOperands())
      for (Value source : model->originOf(operand).placed)
        if (stageOf.lookup(source.getDefiningOp()) != stage)
          crossing.insert({source, stage});
    forEachTrained(*model, op, [&](nn::WeightOp weight, RankedTensorType) {
      auto &[bytes, readers] = weights[weight.getSymNameAttr()];
      bytes = byteSize(weight.getTensorType());
      readers.insert(stage);
    });
  }
  for (auto [value, to] : crossing) {
    auto type = cast<RankedTensorType>(value.getType());
    result.edges.push_back({stageOf.lookup(value.getDefiningOp()), to,
                            byteSize(type),
                            isa<FloatType>(type.getElementType())});
  }
  for (auto &[weight, read] : weights)
    if (read.second.size() == 1)
      result.weightBytes[*read.second.begin()] += read.first;
  const DenseMap<Operation *, int32_t> all =
      stagesOfAll(*model, std::move(stageOf));
  result.lastLayers.assign(cut.stages, -1);
  for (Operation &op : model->getFunction().getBody().front()) {
    auto found = all.find(&op);
    const int32_t stage = found == all.end() ? -1 : found->second;
    if (stage >= 0 && isLayer(&op))
      result.lastLayers[stage] = static_cast<int32_t>(result.stageOfOp.size());
    result.stageOfOp.push_back(stage);
  }
  return result;
}

FailureOr<std::map<std::string, int32_t>> stagesOfNodes(ModuleOp module,
                                                        const StageCut &cut) {
  StageOfOp stageOf;
  const std::unique_ptr<ModelOps> model = readCut(module, cut, stageOf);
  if (!model)
    return failure();
  std::map<std::string, int32_t> nodes;
  for (Operation *op : model->placed()) {
    StringRef name = nn::nameOfLocation(op->getLoc());
    auto stage = stageOf.find(op);
    if (name.empty() || stage == stageOf.end())
      continue;
    auto [it, isNew] = nodes.try_emplace(name.str(), stage->second);
    if (!isNew && it->second != stage->second)
      it->second = nn::kSeveralStages;
  }
  return nodes;
}

} // namespace pipewright::pipe
