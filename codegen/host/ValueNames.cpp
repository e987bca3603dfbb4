//===- ValueNames.cpp - What a stage body's values are called -------------===//
//
// Gradients are what pipe-differentiate says in locations, what ops for them
// make, and what is computed from such values, also inside of kernels.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/ValueNames.h"

#include "codegen/host/Identifiers.h"
#include "codegen/host/ProgramLayout.h"
#include "passes/step/BodyBuffers.h"

#include "dialects/nn/NNLocation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

namespace pipewright::codegen {

ValueNames::ValueNames(pipe::StageOp stage, Operation *body) : stage(stage) {
  // What is stashed or handed over has its name from the body that made it.
  if (isa<pipe::GradientBodyInterface>(body))
    findGradients(stage.getForward());
  if (isa<pipe::WeightGradientOp>(body))
    findGradients(stage.getInputGradient());
  findGradients(body);
}

/// The value that an argument of a gradient body is the kept copy of.
Value ValueNames::keptValue(BlockArgument argument) {
  auto body =
      dyn_cast<pipe::GradientBodyInterface>(argument.getOwner()->getParentOp());
  if (!body)
    return argument;
  SmallVector<int64_t> fields = body.getStashFields();
  size_t saved = body.getInputs().size() + body.getOutputs().size();
  SmallVector<int64_t> again = body.getRecomputedFields();
  size_t recomputed = saved + fields.size() + body.getGradientsOf().size();
  size_t handover = recomputed + again.size();
  size_t number = argument.getArgNumber();
  // What two places need is copied.
  auto madeBy = [&](pipe::TaskKind giver, size_t field) {
    Value made = behindViews(stage.getKept(giver)[field]);
    if (auto copy = made.getDefiningOp<pipe::CopyOp>())
      made = behindViews(copy.getValue());
    return made;
  };
  if (number >= saved && number < saved + fields.size())
    return behindViews(
        stage.getForward().getReturn().getStash()[fields[number - saved]]);
  if (number >= handover)
    return madeBy(pipe::TaskKind::input_gradient, number - handover);
  if (number >= recomputed)
    return madeBy(pipe::TaskKind::recompute, again[number - recomputed]);
  return argument;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

bool ValueNames::isGradient(Value value) {
  value = behindViews(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    value = keptValue(argument);
  return gradients.contains(value) || nn::isGradient(nn::locationOf(value));
}

/// Ops for gradients are called so, `nn.gelu_backward`; also IR that was
/// written without its locations has them.
static bool isBackward(Operation &op) {
  return op.getName().stripDialect().contains("_backward");
}

/// Notes which results of a kernel are gradients: those that depend on an
/// operand that is one, or on one that the kernel makes.
void ValueNames::addGradientsOf(nn::LaunchOp launch) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getKernelAttr());
  if (!kernel || kernel.isExternal()) {
    if (llvm::any_of(launch.getOperands(),
                     [&](Value operand) { return isGradient(operand); }))
      gradients.insert_range(launch.getResults());
    return;
  }
  Block &block = kernel.getBody().front();
  llvm::DenseSet<Value> inside;
  for (auto [operand, argument] :
       llvm::zip_equal(launch.getOperands(), block.getArguments()))
    if (isGradient(operand))
      inside.insert(argument);
  for (Operation &op : block.without_terminator())
    if (isBackward(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
          return inside.contains(operand);
        }))
      inside.insert_range(op.getResults());
  for (auto [result, returned] : llvm::zip_equal(
           launch.getResults(), block.getTerminator()->getOperands()))
    if (inside.contains(returned))
      gradients.insert(result);
}

void ValueNames::findGradients(Operation *body) {
  if (auto gradient = dyn_cast<pipe::GradientBodyInterface>(body)) {
    size_t saved = gradient.getInputs().size() + gradient.getOutputs().size() +
                   gradient.getStashFields().size();
    auto arguments = pipe::blockOf(body).getArguments();
    gradients.insert_range(
        arguments.slice(saved, gradient.getGradientsOf().size()));
  }
  for (Operation &op : pipe::blockOf(body)) {
    if (auto launch = dyn_cast<nn::LaunchOp>(op))
      addGradientsOf(launch);
    else if (isBackward(op) ||
             llvm::any_of(op.getOperands(),
                          [&](Value operand) { return isGradient(operand); }))
      gradients.insert_range(op.getResults());
  }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The result of the model's op that a kernel returns; null if unknown.
OpResult ValueNames::makerOf(OpResult result) {
  auto launch = dyn_cast<nn::LaunchOp>(result.getOwner());
  if (!launch)
    return result;
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getKernelAttr());
  if (!kernel || kernel.isExternal())
    return {};
  Operation *end = kernel.getBody().front().getTerminator();
  return dyn_cast<OpResult>(
      behindViews(end->getOperand(result.getResultNumber())));
}

/// What tells the result from others of its op, as ODS calls them: nothing for
/// the first, unless all are gradients (dx, dscale, dbias).
static std::string suffixOf(OpResult result) {
  SmallVector<std::string> names(result.getOwner()->getNumResults());
  if (auto named = dyn_cast<OpAsmOpInterface>(result.getOwner()))
    named.getAsmResultNames([&](Value value, StringRef name) {
      names[cast<OpResult>(value).getResultNumber()] = name.str();
    });
  StringRef name = names[result.getResultNumber()];
  if (names.size() > 1 &&
      llvm::all_of(names, [](StringRef each) { return each.starts_with("d"); }))
    name = name.drop_front();
  else if (result.getResultNumber() == 0)
    return "";
  return name.empty() ? "" : ("_" + name).str();
}

/// Gradients are called after what they are the gradient of, whose name the op
/// which made them has from its forward op.
std::string ValueNames::of(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    value = keptValue(argument);
  std::string name = identifierFor(value);
  if (auto result = dyn_cast<OpResult>(value)) {
    if (OpResult maker = makerOf(result))
      name += suffixOf(maker);
    else if (result.getResultNumber() > 0)
      name += "_" + std::to_string(result.getResultNumber());
  }
  if (!isGradient(value) || StringRef(name).starts_with("d_"))
    return name;
  return "d_" + name;
}

} // namespace pipewright::codegen
