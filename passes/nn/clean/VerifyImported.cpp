//===- VerifyImported.cpp - nn-verify-imported ----------------------------===//
//
// The contract between the frontends and the passes: what a model is before it
// is cut. What one op alone can check stands in the dialect's verifiers.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNLimits.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  void checkModel(func::FuncOp model);
  void checkNames(func::FuncOp model);
  void checkBody(func::FuncOp model);
  void checkSize(Operation *op, Value value);

  bool valid = true;
};

/// Inputs and outputs are found by name at run time.
void ImportedVerifier::checkNames(func::FuncOp model) {
  auto check = [&](size_t count, bool isArgument) {
    llvm::StringSet<> names;
    StringRef what = isArgument ? "argument" : "result";
    for (size_t i = 0; i < count; ++i) {
      auto name = isArgument
                      ? model.getArgAttrOfType<StringAttr>(i, "nn.name")
                      : model.getResultAttrOfType<StringAttr>(i, "nn.name");
      if (!name)
        error(model) << "expects " << what << " " << i
                     << " to have an 'nn.name'";
      else if (!names.insert(name.getValue()).second)
        error(model) << "has two " << what << "s named " << name;
    }
  };
  check(model.getNumArguments(), /*isArgument=*/true);
  check(model.getNumResults(), /*isArgument=*/false);
}

void ImportedVerifier::checkSize(Operation *op, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return;
  if (std::string problem = problemOfSize(type.getShape()); !problem.empty())
    error(op) << problem;
}

void ImportedVerifier::checkBody(func::FuncOp model) {
  model.getBody().walk([&](Operation *op) {
    if (op == model.getBody().front().getTerminator())
      return;
    if (!isa<NNDialect, call::CallDialect>(op->getDialect()) ||
        isa<WeightOp>(op))
      error(op) << "is not allowed in '@model', which holds nn and call "
                   "ops that compute";
    else if (isa<LaunchOp, AccumulateGradientOp>(op))
      error(op) << "does not occur before a model is differentiated";
    for (Value result : op->getResults())
      checkSize(op, result);
  });
  for (Value argument : model.getArguments())
    checkSize(model, argument);
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
  checkNames(model);
  checkBody(model);
}

LogicalResult ImportedVerifier::run(ModuleOp module) {
  func::FuncOp model;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && function.getSymName() == "model")
      model = function;
    else if (!isa<WeightOp>(op))
      error(&op) << "is not allowed in an imported module, which holds "
                    "'nn.weight' and one function '@model'";
  }
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
