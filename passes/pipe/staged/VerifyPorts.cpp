//===- VerifyPorts.cpp - Names and types of a module with stages ----------===//
//
// See VerifyPorts.h. nn-verify-imported has the same rules for models; text of
// a later level has not been there.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/VerifyPorts.h"

#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWeightNames.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/nn/clean/ModelProblems.h"
#include "support/Text.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace pipewright::pipe {

namespace {

class PortVerifier {
public:
  LogicalResult run(ModuleOp module);

private:
  InFlightDiagnostic error(Operation *op) {
    valid = false;
    return op->emitError();
  }
  void checkName(Operation *op, StringRef what, StringRef name);
  void checkTypes(Operation *op, TypeRange types);
  void checkWeight(nn::WeightOp weight);
  void checkSources(Operation *body, ArrayAttr sources);
  void checkCounted(ModuleOp module);

  bool valid = true;
  llvm::StringMap<Type> inputs;
  llvm::StringSet<> weights;
};

} // namespace

void PortVerifier::checkName(Operation *op, StringRef what, StringRef name) {
  if (std::string problem = text::problemOfName(name); !problem.empty())
    error(op) << what << " '" << text::shortened(name) << "': " << problem;
}

void PortVerifier::checkTypes(Operation *op, TypeRange types) {
  for (Type type : types) {
    std::string problem =
        isa<TensorType>(type) ? nn::problemOfType(type) : std::string();
    if (problem.empty())
      continue;
    error(op) << "'" << op->getName() << "' " << problem;
    return;
  }
}

void PortVerifier::checkWeight(nn::WeightOp weight) {
  StringRef name = nn::fileNameOf(weight);
  checkName(weight, "weight", name);
  if (name == nn::kMetadataName)
    error(weight) << "weight '" << name
                  << "' has a name that files of weights keep for notes";
  if (!weights.insert(name).second)
    error(weight) << "is the second weight that files call '"
                  << text::shortened(name) << "'";
  checkTypes(weight, weight.getTensorType());
}

void PortVerifier::checkSources(Operation *body, ArrayAttr sources) {
  for (auto [argument, source] :
       llvm::zip(body->getRegion(0).getArguments(), sources)) {
    auto input = dyn_cast<InputAttr>(source);
    if (!input)
      continue;
    StringRef name = input.getName().getValue();
    checkName(body, "input", name);
    Type type = argument.getType();
    auto [known, isFirst] = inputs.try_emplace(name, type);
    if (!isFirst && known->second != type)
      error(body) << "input '" << text::shortened(name) << "' is " << type
                  << " here, but " << known->second << " before";
  }
}

void PortVerifier::checkCounted(ModuleOp module) {
  Attribute all = module->getAttr(nn::kCountedInputs);
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(all);
  if (all && !dictionary)
    error(module) << "expects '" << nn::kCountedInputs
                  << "' to be a dictionary, but got " << all;
  if (!dictionary)
    return;
  for (NamedAttribute counted : dictionary) {
    std::string problem = nn::problemOfCounted(
        counted, [&](StringRef name) { return inputs.lookup(name); });
    if (!problem.empty())
      error(module) << "'" << nn::kCountedInputs << "' of '"
                    << text::shortened(counted.getName().getValue()) << "' "
                    << problem;
  }
}

LogicalResult PortVerifier::run(ModuleOp module) {
  for (auto stage : module.getOps<StageOp>()) {
    if (ForwardOp forward = stage.getForward())
      checkSources(forward, forward.getSources());
    if (EvaluateOp evaluate = stage.getEvaluate())
      checkSources(evaluate, evaluate.getSources());
  }
  module.walk([&](Operation *op) {
    if (auto weight = dyn_cast<nn::WeightOp>(op))
      checkWeight(weight);
    if (auto report = dyn_cast<ReportOp>(op))
      checkName(report, "output", report.getName());
    checkTypes(op, op->getResultTypes());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        checkTypes(op, block.getArgumentTypes());
  });
  checkCounted(module);
  return success(valid);
}

LogicalResult verifyPorts(ModuleOp module) {
  return PortVerifier().run(module);
}

} // namespace pipewright::pipe
