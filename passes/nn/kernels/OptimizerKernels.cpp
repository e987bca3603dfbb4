//===- OptimizerKernels.cpp - kernels that update in place ----------------===//

#include "passes/nn/kernels/OptimizerKernels.h"

#include "dialects/nn/NNAttributeNames.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace pipewright::nn {

/// Creates a function whose result `i` overwrites argument `i`, for so many
/// arguments as `inPlace` says; a rounded result may follow, which has a place
/// of its own.
static func::FuncOp createInPlace(ModuleOp kernels, StringRef name,
                                  ArrayRef<Type> arguments,
                                  ArrayRef<StringRef> names, int64_t inPlace,
                                  Type rounded) {
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  SmallVector<Type> results(arguments.take_front(inPlace));
  if (rounded)
    results.push_back(rounded);
  auto func = func::FuncOp::create(builder, kernels.getLoc(), name,
                                   builder.getFunctionType(arguments, results));
  func.setPrivate();
  for (int64_t i = 0; i < inPlace; ++i)
    func.setResultAttr(i, nn::kInPlace, builder.getI64IntegerAttr(i));
  if (rounded)
    func.setResultAttr(inPlace, nn::kName, builder.getStringAttr("rounded"));
  for (auto [i, argument] : llvm::enumerate(names))
    func.setArgAttr(i, nn::kName, builder.getStringAttr(argument));
  func.addEntryBlock();
  return func;
}

static Type roundedType(OpBuilder &builder, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getBF16Type());
}

func::FuncOp buildUpdateKernel(ModuleOp kernels, OptimizerAttr optimizer,
                               ArrayRef<int64_t> shape, bool rounds,
                               bool maySkip) {
  OptimizerChoice choice = optimizer.getChoice().compiledIn();
  std::string name = choice.row->name.str() + (rounds ? "_bf16_" : "_");
  llvm::raw_string_ostream os(name);
  llvm::interleave(shape, os, "x");
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder builder(kernels.getContext());
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  SmallVector<StringRef> names{"weights", "gradient"};
  llvm::append_range(names, choice.states());
  int64_t inPlace = names.size();
  SmallVector<Type> types(inPlace, type);
  names.push_back("hyper");
  types.push_back(
      RankedTensorType::get({static_cast<int64_t>(choice.row->scalars.size())},
                            builder.getF32Type()));
  Type rounded = rounds ? roundedType(builder, shape) : Type();
  func::FuncOp func =
      createInPlace(kernels, name, types, names, inPlace, rounded);
  builder.setInsertionPointToEnd(&func.getBody().front());
  Location loc = func.getLoc();
  auto arguments = func.getArguments();
  auto update =
      UpdateOp::create(builder, loc, arguments[0], arguments[1],
                       arguments.slice(2, inPlace - 2), arguments[inPlace],
                       OptimizerAttr::get(func.getContext(), choice), maySkip);
  SmallVector<Value> results{update.getNewW(),
                             createSplat(builder, loc, type, 0.0)};
  llvm::append_range(results, update.getNewStates());
  if (rounds)
    results.push_back(CastOp::create(builder, loc, rounded, update.getNewW()));
  func::ReturnOp::create(builder, loc, results);
  return func;
}

func::FuncOp buildRoundingKernel(ModuleOp kernels, int64_t size) {
  std::string name = "round_" + std::to_string(size);
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder builder(kernels.getContext());
  Type type = RankedTensorType::get({size}, builder.getF32Type());
  Type rounded = roundedType(builder, {size});
  func::FuncOp func = createInPlace(kernels, name, type, {"weights"},
                                    /*inPlace=*/0, rounded);
  builder.setInsertionPointToEnd(&func.getBody().front());
  Value cast =
      CastOp::create(builder, func.getLoc(), rounded, func.getArgument(0));
  func::ReturnOp::create(builder, func.getLoc(), cast);
  return func;
}

} // namespace pipewright::nn
