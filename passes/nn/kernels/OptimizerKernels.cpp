//===- OptimizerKernels.cpp - kernels that update in place ----------------===//

#include "passes/nn/kernels/OptimizerKernels.h"

#include "dialects/nn/NNAttributeNames.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace pipewright::nn {

/// Creates a function whose result `i` overwrites argument `i`, for so many
/// arguments as `inPlace` says; another result may follow, which has a place of
/// its own.
static func::FuncOp createInPlace(ModuleOp kernels, StringRef name,
                                  ArrayRef<Type> arguments,
                                  ArrayRef<StringRef> names, int64_t inPlace,
                                  Type other, StringRef otherName = "rounded") {
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  SmallVector<Type> results(arguments.take_front(inPlace));
  if (other)
    results.push_back(other);
  auto func = func::FuncOp::create(builder, kernels.getLoc(), name,
                                   builder.getFunctionType(arguments, results));
  func.setPrivate();
  for (int64_t i = 0; i < inPlace; ++i)
    func.setResultAttr(i, nn::kInPlace, builder.getI64IntegerAttr(i));
  if (other)
    func.setResultAttr(inPlace, nn::kName, builder.getStringAttr(otherName));
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

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

namespace {

/// Formulas of a kernel over a matrix, in nn ops.
class MatrixKernel {
public:
  MatrixKernel(ModuleOp kernels, OptimizerAttr optimizer, WeightOp matrix)
      : choice(optimizer.getChoice().compiledIn()),
        type(matrix.getTensorType()), builder(kernels.getContext()),
        location(kernels.getLoc()),
        hyperType(RankedTensorType::get(
            {static_cast<int64_t>(choice.row->scalars.size())},
            builder.getF32Type())) {}

  std::string name(StringRef part) const {
    return llvm::formatv("{0}_{1}_{2}x{3}", choice.row->name, part,
                         type.getDimSize(0), type.getDimSize(1));
  }
  void enter(func::FuncOp kernel) {
    builder.setInsertionPointToEnd(&kernel.getBody().front());
    hyper = kernel.getArguments().back();
  }

  /// A scalar of the step; it broadcasts.
  Value scalar(StringRef kind) {
    int64_t position = choice.row->positionOf(kind);
    return SliceOp::create(builder, location, hyper,
                           ArrayRef<int64_t>{position}, ArrayRef<int64_t>{1},
                           ArrayRef<int64_t>{1});
  }
  Value number(double value) {
    return createSplat(builder, location,
                       RankedTensorType::get({}, builder.getF32Type()), value);
  }
  template <class OpTy>
  Value make(Value a, Value b) {
    return OpTy::create(builder, location, a, b);
  }
  /// from + share * (to - from)
  Value between(Value from, Value to, double share) {
    return make<AddOp>(from, make<MulOp>(number(share), make<SubOp>(to, from)));
  }
  /// `after`, or `before` where the gradients' scale is not a number.
  Value unlessSkipped(Value before, Value after, bool maySkip) {
    if (!maySkip)
      return after;
    Value scale = scalar("GradientScale");
    Value isSkipped = CompareOp::create(builder, location, scale, scale,
                                        ComparePredicate::Ne);
    return WhereOp::create(builder, location, isSkipped, before, after);
  }

  const OptimizerChoice choice;
  const RankedTensorType type;
  OpBuilder builder;
  const Location location;
  const RankedTensorType hyperType;
  Value hyper;
};

} // namespace

func::FuncOp buildDirectionKernel(ModuleOp kernels, OptimizerAttr optimizer,
                                  WeightOp matrix, bool maySkip) {
  // PyTorch's; where the gradient is 0, so is the direction.
  constexpr double leastNorm = 1e-7;
  MatrixKernel k(kernels, optimizer, matrix);
  std::string name = k.name("direction");
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  func::FuncOp kernel = createInPlace(
      kernels, name, {k.type, k.type, k.hyperType}, {"m", "gradient", "hyper"},
      /*inPlace=*/1, k.type, "direction");
  k.enter(kernel);
  const double momentum = k.choice.get("momentum");
  Value m = kernel.getArgument(0);
  Value g = k.make<MulOp>(kernel.getArgument(1), k.scalar("GradientScale"));
  Value newM = k.unlessSkipped(m, k.between(m, g, 1 - momentum), maySkip);
  Value d = k.choice.get("nesterov") != 0 ? k.between(g, newM, momentum) : newM;
  Value squares =
      ReduceSumOp::create(k.builder, k.location, k.make<MulOp>(d, d),
                          ArrayRef<int64_t>{0, 1}, true);
  Value norm = k.make<MaximumOp>(SqrtOp::create(k.builder, k.location, squares),
                                 k.number(leastNorm));
  func::ReturnOp::create(k.builder, k.location, {newM, k.make<DivOp>(d, norm)});
  return kernel;
}

/// How far a step goes in a direction whose singular values are about 1, as a
/// multiple of the learning rate: so far that outputs move alike whatever the
/// shape, or that elements move as AdamW's do (Moonlight, arXiv 2502.16982).
static double reachOf(const OptimizerChoice &choice, WeightOp matrix) {
  double rows = matrix.getTensorType().getDimSize(0),
         columns = matrix.getTensorType().getDimSize(1);
  if (choice.get("match_rms") != 0)
    return 0.2 * std::sqrt(std::max(rows, columns));
  double growth = matrix.getOutputs() == MatrixOutputs::Rows ? rows / columns
                                                             : columns / rows;
  return std::sqrt(std::max(1.0, growth));
}

func::FuncOp buildFinishKernel(ModuleOp kernels, OptimizerAttr optimizer,
                               WeightOp matrix, bool rounds, bool maySkip) {
  MatrixKernel k(kernels, optimizer, matrix);
  std::string name = k.name(rounds ? "bf16_finish" : "finish");
  if (matrix.getOutputs() == MatrixOutputs::Columns)
    name += "_columns";
  if (auto known = kernels.lookupSymbol<func::FuncOp>(name))
    return known;
  Type rounded = rounds ? roundedType(k.builder, k.type.getShape()) : Type();
  func::FuncOp kernel = createInPlace(
      kernels, name, {k.type, k.type, k.type, k.hyperType},
      {"weights", "gradient", "direction", "hyper"}, /*inPlace=*/2, rounded);
  k.enter(kernel);
  Value w = kernel.getArgument(0), rate = k.scalar("LearningRate");
  Value kept = w;
  if (const double decay = k.choice.get("weight_decay"); decay != 0)
    kept = k.make<MulOp>(
        w, k.make<SubOp>(k.number(1), k.make<MulOp>(rate, k.number(decay))));
  Value reach = k.make<MulOp>(rate, k.number(reachOf(k.choice, matrix)));
  Value newW = k.unlessSkipped(
      w, k.make<SubOp>(kept, k.make<MulOp>(reach, kernel.getArgument(2))),
      maySkip);
  SmallVector<Value> results{newW,
                             createSplat(k.builder, k.location, k.type, 0.0)};
  if (rounds)
    results.push_back(CastOp::create(k.builder, k.location, rounded, newW));
  func::ReturnOp::create(k.builder, k.location, results);
  return kernel;
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
