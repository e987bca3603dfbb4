//===- VerifyImported.cpp - nn-verify-imported ----------------------------===//
//
// The contract between the frontends and the passes: what a model is before it
// is cut. What one op alone can check stands in the dialect's verifiers.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNDevices.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNWeightNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/nn/clean/CountedLabels.h"
#include "passes/nn/clean/ModelProblems.h"
#include "support/Text.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNVERIFYIMPORTED
#include "passes/nn/Passes.h.inc"

namespace {

class ImportedVerifier {
public:
  LogicalResult run(ModuleOp module);

private:
  InFlightDiagnostic error(Operation *op) {
    valid = false;
    return op->emitOpError();
  }
  /// The same for what is told without the op's name.
  InFlightDiagnostic plainError(Operation *op) {
    valid = false;
    return op->emitError();
  }
  void checkModel(func::FuncOp model);
  void checkName(Operation *op, const Twine &what, StringRef name);
  void checkWeight(WeightOp weight);
  void checkPorts(func::FuncOp model);
  void checkBody(func::FuncOp model);
  void checkType(Operation *op, const Twine &what, Type type);
  void checkAttributes(Operation *op, ArrayRef<StringRef> known);
  void checkCounted(func::FuncOp model);
  void checkCounted(func::FuncOp model, NamedAttribute counted);
  void checkDivisor(func::FuncOp model, SoftmaxCrossEntropyOp loss);
  void checkConfigurations(ModuleOp module);
  ArrayRef<NamedAttribute> entriesOf(Operation *module, StringRef name);

  bool valid = true;
  llvm::StringSet<> weightNames;
  /// The arguments by their names.
  llvm::StringMap<BlockArgument> arguments;
};

/// What no pass knows at this level could be taken for what a later one wrote.
void ImportedVerifier::checkAttributes(Operation *op,
                                       ArrayRef<StringRef> known) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName().getValue();
    if (!llvm::is_contained(known, name))
      error(op) << "has an attribute '" << name
                << "', which the import level does not have";
    else if (auto text = dyn_cast<StringAttr>(attribute.getValue());
             !text || (name != nn::kName && !text::isPrintable(text)))
      error(op) << "expects '" << name << "' to be printable text, but got "
                << attribute.getValue();
  }
}

void ImportedVerifier::checkName(Operation *op, const Twine &what,
                                 StringRef name) {
  if (std::string problem = text::problemOfName(name); !problem.empty())
    plainError(op) << what << " '" << text::shortened(name) << "': " << problem;
}

void ImportedVerifier::checkWeight(WeightOp weight) {
  checkAttributes(weight, {nn::kName, "nn.reason"});
  StringRef symbol = weight.getSymName(), name = fileNameOf(weight);
  checkName(weight, "weight", symbol);
  if (name != symbol)
    checkName(weight, "weight", name);
  if (name == kMetadataName)
    error(weight) << "is named '" << name
                  << "', which files of weights keep for notes";
  if (!weightNames.insert(name).second)
    error(weight) << "is the second weight that files call '" << name << "'";
  if (isKeptForPasses(symbol))
    error(weight) << "has the symbol '" << symbol
                  << "', which passes need; give it another, and the name as "
                     "'nn.name'";
  checkType(weight, "weight '" + text::shortened(name) + "'",
            weight.getTensorType());
}

/// Inputs and outputs are found by name at run time.
void ImportedVerifier::checkPorts(func::FuncOp model) {
  auto check = [&](size_t count, bool isArgument) {
    llvm::StringSet<> names;
    StringRef what = isArgument ? "argument" : "result";
    for (size_t i = 0; i < count; ++i) {
      DictionaryAttr attributes =
          isArgument ? model.getArgAttrDict(i) : model.getResultAttrDict(i);
      auto name =
          attributes ? attributes.getAs<StringAttr>(nn::kName) : StringAttr();
      if (!name) {
        error(model) << "expects " << what << " " << i
                     << " to have an 'nn.name'";
        continue;
      }
      if (attributes.size() > 1)
        error(model) << "expects " << what << " " << i
                     << " to have no attribute but 'nn.name'";
      checkName(model, what, name);
      if (!names.insert(name.getValue()).second)
        error(model) << "has two " << what << "s named " << name;
      if (isArgument)
        arguments[name] = model.getArgument(i);
      checkType(model, what + " '" + text::shortened(name.getValue()) + "'",
                isArgument ? model.getArgumentTypes()[i]
                           : model.getResultTypes()[i]);
    }
  };
  check(model.getNumArguments(), /*isArgument=*/true);
  check(model.getNumResults(), /*isArgument=*/false);
}

void ImportedVerifier::checkType(Operation *op, const Twine &what, Type type) {
  if (std::string problem = problemOfType(type); !problem.empty())
    plainError(op) << what << " " << problem;
}

void ImportedVerifier::checkBody(func::FuncOp model) {
  model.getBody().walk([&](Operation *op) {
    if (op == model.getBody().front().getTerminator())
      return;
    if (!isa_and_present<NNDialect, call::CallDialect>(op->getDialect()) ||
        isa<WeightOp>(op))
      error(op) << "is not allowed in '@model', which holds nn and call "
                   "ops that compute";
    else if (isa<LaunchOp, AccumulateGradientOp>(op))
      error(op) << "does not occur before a model is differentiated";
    checkAttributes(op, {});
    // A parameter has its weight's type.
    if (!isa<ParameterOp>(op))
      for (Type type : op->getResultTypes())
        checkType(op, "result of '" + op->getName().getStringRef() + "'", type);
    if (auto loss = dyn_cast<SoftmaxCrossEntropyOp>(op))
      checkDivisor(model, loss);
  });
}

//===----------------------------------------------------------------------===//
// Counted inputs
//===----------------------------------------------------------------------===//

/// A loss that divides by a number of labels reads these very labels.
void ImportedVerifier::checkDivisor(func::FuncOp model,
                                    SoftmaxCrossEntropyOp loss) {
  auto divisor = dyn_cast_or_null<BlockArgument>(loss.getDivisor());
  if (!divisor)
    return;
  auto name =
      model.getArgAttrOfType<StringAttr>(divisor.getArgNumber(), nn::kName);
  if (!name)
    return;
  auto module = model->getParentOfType<ModuleOp>();
  std::optional<CountedInput> counted = countedInput(module, name);
  if (counted && counted != countedLabelsOf(loss))
    error(loss) << "divides by " << name << ", but '" << kCountedInputs
                << "' counts other labels for it than the loss reads";
}

void ImportedVerifier::checkCounted(func::FuncOp model,
                                    NamedAttribute counted) {
  std::string problem = problemOfCounted(counted, [&](StringRef name) {
    BlockArgument argument = arguments.lookup(name);
    return argument ? argument.getType() : Type();
  });
  if (!problem.empty())
    error(model->getParentOp())
        << "'" << kCountedInputs << "' of '"
        << text::shortened(counted.getName().getValue()) << "' " << problem;
}

/// Those of an attribute that is a dictionary; none where it is not there.
ArrayRef<NamedAttribute> ImportedVerifier::entriesOf(Operation *module,
                                                     StringRef name) {
  Attribute value = module->getAttr(name);
  auto dictionary = dyn_cast_if_present<DictionaryAttr>(value);
  if (value && !dictionary)
    error(module) << "expects '" << name << "' to be a dictionary, but got "
                  << value;
  return dictionary ? dictionary.getValue() : ArrayRef<NamedAttribute>();
}

/// What is counted is read in memory of the labels' size at run time.
void ImportedVerifier::checkCounted(func::FuncOp model) {
  for (NamedAttribute input : entriesOf(model->getParentOp(), kCountedInputs))
    checkCounted(model, input);
}

void ImportedVerifier::checkConfigurations(ModuleOp module) {
  for (NamedAttribute entry : entriesOf(module, kConfigurations)) {
    StringRef name = entry.getName();
    checkName(module, "configuration", name);
    std::string problem;
    if (!readConfiguration(entry.getValue(), problem))
      error(module) << "expects the configuration '" << text::shortened(name)
                    << "' " << problem;
  }
}

void ImportedVerifier::checkModel(func::FuncOp model) {
  if (!model.getBody().hasOneBlock()) {
    error(model) << "expects one block, but has "
                 << model.getBody().getBlocks().size();
    return;
  }
  if (model.getNumResults() == 0) {
    error(model) << "expects the loss as its first result, but has no results";
    return;
  }
  auto loss = dyn_cast<RankedTensorType>(model.getResultTypes()[0]);
  if (!loss || loss.getRank() != 0 || !loss.getElementType().isF32())
    error(model) << "expects its first result, the loss, to be 'tensor<f32>', "
                    "but got "
                 << model.getResultTypes()[0];
  checkPorts(model);
  checkBody(model);
  checkCounted(model);
}

LogicalResult ImportedVerifier::run(ModuleOp module) {
  func::FuncOp model;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && function.getSymName() == "model")
      model = function;
    else if (auto weight = dyn_cast<WeightOp>(op))
      checkWeight(weight);
    else
      error(&op) << "is not allowed in an imported module, which holds "
                    "'nn.weight' and one function '@model'";
  }
  checkConfigurations(module);
  if (model)
    checkModel(model);
  else
    error(module) << "expects a function '@model', but has none";
  return success(valid);
}

struct VerifyImported : impl::NNVerifyImportedBase<VerifyImported> {
  void runOnOperation() override {
    if (failed(ImportedVerifier().run(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace pipewright::nn
