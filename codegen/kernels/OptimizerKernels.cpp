//===- OptimizerKernels.cpp - kernels that update in place ----------------===//

#include "codegen/kernels/Kernels.h"

#include "dialects/nn/NNOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace pipewright::codegen {

unsigned OptimizerSpec::numStates() const {
  bool hasMomentum = momentum != 0.0;
  if (name == "sgd")
    return hasMomentum ? 1 : 0;
  if (name == "rmsprop")
    return hasMomentum ? 2 : 1;
  return 2;
}

/// Creates a function whose result `i` overwrites argument `inPlace[i]`; more
/// results follow, which have places of their own.
static func::FuncOp createInPlace(ModuleOp kernels, StringRef name,
                                  ArrayRef<Type> arguments,
                                  ArrayRef<StringRef> names,
                                  ArrayRef<int64_t> inPlace,
                                  ArrayRef<Type> moreResults = {}) {
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  SmallVector<Type> results = llvm::map_to_vector(
      inPlace, [&](int64_t argument) { return arguments[argument]; });
  llvm::append_range(results, moreResults);
  auto func = func::FuncOp::create(builder, kernels.getLoc(), name,
                                   builder.getFunctionType(arguments, results));
  func.setPrivate();
  for (auto [i, argument] : llvm::enumerate(inPlace))
    func.setResultAttr(i, "nn.in_place", builder.getI64IntegerAttr(argument));
  for (auto [i, argument] : llvm::enumerate(names))
    func.setArgAttr(i, "nn.name", builder.getStringAttr(argument));
  func.addEntryBlock();
  return func;
}

/// The two-state names of Adam, or what sgd and rmsprop keep.
static SmallVector<StringRef> stateNames(const OptimizerSpec &spec) {
  SmallVector<StringRef> names;
  if (spec.name == "adam" || spec.name == "adamw")
    names = {"m", "v"};
  else if (spec.name == "rmsprop")
    names = {"v", "momentum"};
  else
    names = {"momentum"};
  names.truncate(spec.numStates());
  return names;
}

static Operation *createUpdate(OpBuilder &b, Location loc,
                               const OptimizerSpec &spec, ValueRange a) {
  auto number = [&](double value) { return b.getF64FloatAttr(value); };
  NamedAttrList attributes;
  attributes.set("weight_decay", number(spec.weightDecay));
  OperationState state(loc, "nn." + spec.name);
  state.addOperands(a);
  for (Value value : a.drop_back())
    if (value != a[1])
      state.addTypes(value.getType());
  if (spec.name == "sgd") {
    attributes.set("momentum", number(spec.momentum));
    if (spec.nesterov)
      attributes.set("nesterov", b.getUnitAttr());
  } else if (spec.name == "rmsprop") {
    attributes.set("momentum", number(spec.momentum));
    attributes.set("alpha", number(spec.alpha));
    attributes.set("eps", number(spec.epsilon));
  } else {
    attributes.set("beta1", number(spec.beta1));
    attributes.set("beta2", number(spec.beta2));
    attributes.set("eps", number(spec.epsilon));
  }
  state.addAttributes(attributes);
  return b.create(state);
}

static Type loweredType(OpBuilder &builder, int64_t size) {
  return RankedTensorType::get({size}, builder.getBF16Type());
}

FailureOr<func::FuncOp> buildOptimizerKernel(ModuleOp kernels,
                                             const OptimizerSpec &spec,
                                             int64_t size, bool lowers) {
  if (spec.name != "sgd" && spec.name != "adam" && spec.name != "adamw" &&
      spec.name != "rmsprop")
    return emitError(kernels.getLoc())
           << "expects optimizer sgd, adam, adamw or rmsprop, but got '"
           << spec.name << "'";
  std::string name =
      spec.name + (lowers ? "_bf16_" : "_") + std::to_string(size);
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder builder(kernels.getContext());
  Type flat = RankedTensorType::get({size}, builder.getF32Type());
  SmallVector<StringRef> names{"weights", "gradient"};
  llvm::append_range(names, stateNames(spec));
  SmallVector<Type> types(names.size(), flat);
  SmallVector<int64_t> inPlace =
      llvm::to_vector(llvm::seq<int64_t>(0, names.size()));
  names.push_back("hyper");
  types.push_back(RankedTensorType::get({4}, builder.getF32Type()));
  SmallVector<Type> moreResults;
  if (lowers)
    moreResults.push_back(loweredType(builder, size));
  func::FuncOp func =
      createInPlace(kernels, name, types, names, inPlace, moreResults);
  if (lowers)
    func.setResultAttr(inPlace.size(), "nn.name",
                       builder.getStringAttr("lowered"));
  builder.setInsertionPointToEnd(&func.getBody().front());
  Operation *update =
      createUpdate(builder, func.getLoc(), spec, func.getArguments());
  Value zero = nn::createSplat(builder, func.getLoc(),
                               cast<RankedTensorType>(flat), 0.0);
  SmallVector<Value> results{update->getResult(0), zero};
  llvm::append_range(results, update->getResults().drop_front());
  if (lowers)
    results.push_back(nn::CastOp::create(
        builder, func.getLoc(), moreResults.front(), update->getResult(0)));
  func::ReturnOp::create(builder, func.getLoc(), results);
  return func;
}

func::FuncOp buildLowerKernel(ModuleOp kernels, int64_t size) {
  std::string name = "lower_" + std::to_string(size);
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder builder(kernels.getContext());
  Type flat = RankedTensorType::get({size}, builder.getF32Type());
  Type lowered = loweredType(builder, size);
  func::FuncOp func =
      createInPlace(kernels, name, flat, {"weights"}, {}, lowered);
  func.setResultAttr(0, "nn.name", builder.getStringAttr("lowered"));
  builder.setInsertionPointToEnd(&func.getBody().front());
  Value cast =
      nn::CastOp::create(builder, func.getLoc(), lowered, func.getArgument(0));
  func::ReturnOp::create(builder, func.getLoc(), cast);
  return func;
}

func::FuncOp buildAccumulateKernel(ModuleOp kernels, int64_t size) {
  std::string name = "accumulate_" + std::to_string(size);
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder builder(kernels.getContext());
  Type flat = RankedTensorType::get({size}, builder.getF32Type());
  func::FuncOp func =
      createInPlace(kernels, name, {flat, flat}, {"gradient", "x"}, 0);
  builder.setInsertionPointToEnd(&func.getBody().front());
  Value sum = nn::AddOp::create(builder, func.getLoc(), func.getArgument(0),
                                func.getArgument(1));
  func::ReturnOp::create(builder, func.getLoc(), sum);
  return func;
}

} // namespace pipewright::codegen
