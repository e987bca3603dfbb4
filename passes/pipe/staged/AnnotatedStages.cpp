//===- AnnotatedStages.cpp - Stages as the model's file says --------------===//
//
// Passes may have made ops that no node stands for: such an op goes where what
// it reads is made.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/StageAssignment.h"

#include "dialects/nn/NNDevices.h"
#include "dialects/nn/NNLocation.h"
#include "dialects/pipe/PipeDialect.h"
#include "support/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright::pipe {

namespace {

class AnnotatedStages {
public:
  AnnotatedStages(const ModelOps &model, int64_t stages)
      : model(model), stages(stages),
        module(model.getFunction()->getParentOfType<ModuleOp>()) {}

  LogicalResult choose(StringRef name);
  FailureOr<StageOfOp> assign();

private:
  InFlightDiagnostic error() {
    return module.emitError("pipe-partition-stages: ");
  }
  InFlightDiagnostic errorOfChosen() {
    return error() << "configuration '" << text::shortened(chosen) << "' ";
  }
  LogicalResult checkSizes();
  LogicalResult readStages();
  void fillFromUsers();
  LogicalResult checkEdges();
  LogicalResult checkStages();
  int32_t lastProducer(Operation *op) const;

  const ModelOps &model;
  int64_t stages;
  ModuleOp module;
  std::string chosen;
  nn::DeviceConfiguration configuration;
  /// How many annotated stages are one.
  int64_t merged = 1;
  StageOfOp stageOf;
};

} // namespace

LogicalResult AnnotatedStages::choose(StringRef name) {
  auto all = module->getAttrOfType<DictionaryAttr>(nn::kConfigurations);
  if (!all || all.empty())
    return error() << "expects a model whose nodes have stages "
                      "(`device_configurations` of ONNX), but it has none: "
                      "write them with 'pipewright plan --write-onnx', or use "
                      "another --balance";
  std::vector<std::string> names;
  for (NamedAttribute entry : all)
    names.push_back("'" + text::shortened(entry.getName().getValue()) + "'");
  if (name.empty() && all.size() > 1)
    return error() << "expects one configuration of devices, but the model has "
                   << llvm::join(names, ", ")
                   << ": name one with --balance annotated:NAME";
  chosen = name.empty() ? all.begin()->getName().str() : name.str();
  Attribute value = all.get(chosen);
  if (!value)
    return error() << "there is no configuration '" << text::shortened(name)
                   << "', only " << llvm::join(names, ", ");
  std::string problem;
  auto read = nn::readConfiguration(value, problem);
  if (!read)
    return error() << "expects the configuration '" << text::shortened(chosen)
                   << "' " << problem;
  configuration = *read;
  return checkSizes();
}

LogicalResult AnnotatedStages::checkSizes() {
  int64_t count = configuration.countStages();
  const std::optional<int64_t> ranks = programOf(module).ranks;
  if (count == 0)
    return errorOfChosen() << "gives no node a stage";
  if (count < stages || count % stages != 0) {
    auto diag = errorOfChosen()
                << "has " << count << (count == 1 ? " stage" : " stages");
    diag << ", which are not shared evenly by " << stages;
    if (ranks)
      diag << " (" << *ranks << " ranks with " << stages / *ranks
           << " each): use ranks x loops that divide " << count;
    return diag;
  }
  if (ranks && configuration.devices > 0 && configuration.devices < *ranks)
    return errorOfChosen() << "is for " << configuration.devices
                           << " devices, but there are " << *ranks << " ranks";
  merged = count / stages;
  return success();
}

int32_t AnnotatedStages::lastProducer(Operation *op) const {
  int32_t last = -1;
  for (Value operand : op->getOperands())
    for (Value source : model.originOf(operand).placed)
      last = std::max(last, stageOf.lookup(source.getDefiningOp()));
  return last;
}

/// -1 for what is not annotated and reads nothing that is placed.
LogicalResult AnnotatedStages::readStages() {
  Operation *loss = model.getLoss().getDefiningOp();
  for (Operation *op : model.placed()) {
    if (!model.isNeededForLoss(op))
      continue;
    StringRef node = nn::nameOfLocation(op->getLoc());
    std::optional<int64_t> noted = configuration.stageOf(node);
    if (noted == nn::kSeveralStages)
      return errorOfChosen() << "has nodes in different stages that are all "
                                "called '"
                             << node << "': give them names of their own";
    stageOf[op] = noted        ? static_cast<int32_t>(*noted / merged)
                  : op == loss ? static_cast<int32_t>(stages - 1)
                               : lastProducer(op);
  }
  return success();
}

/// What reads inputs alone goes where it is read first.
void AnnotatedStages::fillFromUsers() {
  DenseMap<Operation *, int32_t> firstUser;
  for (Operation *op : llvm::reverse(model.placed())) {
    auto found = stageOf.find(op);
    if (found == stageOf.end())
      continue;
    if (found->second < 0) {
      auto user = firstUser.find(op);
      found->second = user == firstUser.end() ? 0 : user->second;
    }
    for (Value operand : op->getOperands())
      for (Value source : model.originOf(operand).placed) {
        auto [it, isNew] =
            firstUser.try_emplace(source.getDefiningOp(), found->second);
        if (!isNew)
          it->second = std::min(it->second, found->second);
      }
  }
}

LogicalResult AnnotatedStages::checkEdges() {
  for (Operation *op : model.placed()) {
    auto found = stageOf.find(op);
    if (found == stageOf.end())
      continue;
    for (Value operand : op->getOperands())
      for (Value source : model.originOf(operand).placed) {
        Operation *producer = source.getDefiningOp();
        int32_t before = stageOf.lookup(producer);
        if (before > found->second)
          return errorOfChosen()
                 << "has '" << nn::nameOfLocation(op->getLoc()) << "' in stage "
                 << found->second << ", which reads '"
                 << nn::nameOfLocation(producer->getLoc()) << "' of stage "
                 << before
                 << ": what a node reads must be of its own stage or of one "
                    "before";
      }
  }
  return success();
}

LogicalResult AnnotatedStages::checkStages() {
  std::vector<bool> has(stages);
  for (auto [op, stage] : stageOf)
    has[stage] = true;
  for (int64_t stage = 0; stage < stages; ++stage)
    if (!has[stage])
      return errorOfChosen()
             << "has no node in stage " << stage << " that training needs";
  return success();
}

FailureOr<StageOfOp> AnnotatedStages::assign() {
  if (failed(readStages()))
    return failure();
  fillFromUsers();
  if (failed(checkEdges()) || failed(checkStages()))
    return failure();
  return std::move(stageOf);
}

FailureOr<StageOfOp> assignAnnotatedStages(const ModelOps &model,
                                           StringRef name, int64_t stages) {
  AnnotatedStages annotated(model, stages);
  if (failed(annotated.choose(name)))
    return failure();
  return annotated.assign();
}

} // namespace pipewright::pipe
