//===- LowerPrecision.cpp - nn-lower-precision ----------------------------===//
//
// One walk over the model in its order. Each op is given the element types
// that it computes in. Values are rounded where they are made and widened where
// they are used, so that it is the short form that is kept and sent.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNLOWERPRECISION
#include "passes/nn/Passes.h.inc"

namespace {

class PrecisionLowering {
public:
  explicit PrecisionLowering(func::FuncOp model)
      : model(model), table(model->getParentOfType<ModuleOp>()),
        bf16(BFloat16Type::get(model.getContext())),
        f32(Float32Type::get(model.getContext())) {}

  LogicalResult run();

private:
  void findLossTail();
  bool isBFloat16(Value value) const {
    return tensorOf(value).getElementType() == bf16;
  }
  bool isFloat(Value value) const {
    return isBFloat16(value) || tensorOf(value).getElementType() == f32;
  }
  /// The element type that a float operand is to have; null for any.
  Type elementFor(OpOperand &operand, bool anyBFloat16) const;
  void roundParameter(ParameterOp read);
  void convertOperands(Operation *op);
  LogicalResult inferResults(Operation *op);
  Value converted(OpOperand &use, Type element);
  Value rounded(Value value);

  func::FuncOp model;
  SymbolTable table;
  Type bf16, f32;
  /// What is computed behind the last library op on the way to the loss.
  DenseSet<Operation *> lossTail;
  /// Maps an f32 value to its bf16 form.
  DenseMap<Value, Value> roundedForms;
};

} // namespace

/// Ops that passes know by name take what they are given.
static PrecisionRule precisionOf(OpOperand &operand) {
  auto op = dyn_cast<PrecisionOpInterface>(operand.getOwner());
  return op ? op.getPrecision(operand) : PrecisionRule::Any;
}

void PrecisionLowering::findLossTail() {
  SmallVector<Value> pending{
      model.getBody().front().getTerminator()->getOperand(0)};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || isa<LibraryOpInterface, ParameterOp>(op) ||
        !lossTail.insert(op).second)
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (precisionOf(operand) != PrecisionRule::F32Inside)
        pending.push_back(operand.get());
  }
}

Type PrecisionLowering::elementFor(OpOperand &operand, bool anyBFloat16) const {
  bool isTail = lossTail.contains(operand.getOwner());
  switch (precisionOf(operand)) {
  case PrecisionRule::BF16:
    return isTail ? f32 : bf16;
  case PrecisionRule::F32:
    return f32;
  case PrecisionRule::FollowOperands:
    return isTail ? f32 : anyBFloat16 ? bf16 : Type();
  case PrecisionRule::Any:
  case PrecisionRule::F32Inside:
    return Type();
  }
  llvm_unreachable("all precisions are listed");
}

/// `value` rounded, but a finite number stays one: masks are made of the
/// largest there are.
static Attribute roundNumber(const APFloat &value, Type to) {
  const llvm::fltSemantics &semantics = cast<FloatType>(to).getFloatSemantics();
  APFloat result = value;
  bool losesInfo;
  result.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  if (result.isInfinity() && value.isFinite())
    result = APFloat::getLargest(semantics, value.isNegative());
  return FloatAttr::get(to, result);
}

static DenseElementsAttr lowerConstant(DenseElementsAttr data,
                                       RankedTensorType type) {
  Type element = type.getElementType();
  if (data.isSplat())
    return DenseElementsAttr::get(
        type, roundNumber(data.getSplatValue<APFloat>(), element));
  SmallVector<Attribute> numbers =
      llvm::map_to_vector(data.getValues<APFloat>(), [&](const APFloat &value) {
        return roundNumber(value, element);
      });
  return DenseElementsAttr::get(type, numbers);
}

Value PrecisionLowering::rounded(Value value) {
  Value &known = roundedForms[value];
  if (known)
    return known;
  RankedTensorType type =
      RankedTensorType::get(tensorOf(value).getShape(), bf16);
  // What was widened loses nothing on the way back.
  auto cast = value.getDefiningOp<CastOp>();
  if (cast && cast.getX().getType() == type)
    return known = cast.getX();
  OpBuilder builder(model.getContext());
  builder.setInsertionPointAfterValue(value);
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return known = ConstantOp::create(builder, value.getLoc(),
                                      lowerConstant(constant.getValue(), type));
  return known = CastOp::create(builder, value.getLoc(), type, value);
}

Value PrecisionLowering::converted(OpOperand &use, Type element) {
  Value value = use.get();
  RankedTensorType type = tensorOf(value);
  if (type.getElementType() == element)
    return value;
  if (element == bf16)
    return rounded(value);
  OpBuilder builder(use.getOwner());
  return CastOp::create(builder, use.getOwner()->getLoc(),
                        f32TensorOf(model.getContext(), type.getShape()),
                        value);
}

void PrecisionLowering::roundParameter(ParameterOp read) {
  auto weight = table.lookup<WeightOp>(read.getWeight());
  if (weight && weight.isLearned())
    read.getResult().setType(
        RankedTensorType::get(read.getResult().getType().getShape(), bf16));
}

void PrecisionLowering::convertOperands(Operation *op) {
  bool anyBFloat16 = llvm::any_of(
      op->getOperands(), [&](Value operand) { return isBFloat16(operand); });
  for (OpOperand &operand : op->getOpOperands())
    if (isFloat(operand.get()))
      if (Type element = elementFor(operand, anyBFloat16))
        operand.set(converted(operand, element));
}

/// Gives the results the element types that follow from the operands.
LogicalResult PrecisionLowering::inferResults(Operation *op) {
  if (auto inferred = dyn_cast<InferTypeOpInterface>(op)) {
    SmallVector<Type> types;
    if (failed(inferred.inferReturnTypes(
            op->getContext(), op->getLoc(), op->getOperands(),
            op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }
  // The others keep their operand's element type.
  if (op->getNumOperands() == 0 ||
      precisionOf(op->getOpOperand(0)) == PrecisionRule::Any)
    return success();
  Type element = tensorOf(op->getOperand(0)).getElementType();
  for (Value result : op->getResults())
    if (isFloat(result))
      result.setType(
          RankedTensorType::get(tensorOf(result).getShape(), element));
  return success();
}

LogicalResult PrecisionLowering::run() {
  findLossTail();
  Block &body = model.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops) {
    if (auto read = dyn_cast<ParameterOp>(op)) {
      roundParameter(read);
      continue;
    }
    convertOperands(op);
    if (failed(inferResults(op)))
      return failure();
  }
  // What users get, and the loss, have the types that they had.
  Operation *end = body.getTerminator();
  for (auto [operand, type] :
       llvm::zip_equal(end->getOpOperands(), model.getResultTypes()))
    operand.set(
        converted(operand, cast<RankedTensorType>(type).getElementType()));
  return success();
}

namespace {

struct LowerPrecision : impl::NNLowerPrecisionBase<LowerPrecision> {
  using NNLowerPrecisionBase::NNLowerPrecisionBase;

  void runOnOperation() override {
    if (type != "bf16") {
      getOperation().emitError("nn-lower-precision: expects type bf16, but got "
                               "'")
          << type << "'";
      return signalPassFailure();
    }
    for (auto model : getOperation().getOps<func::FuncOp>())
      if (!model.isExternal() && failed(PrecisionLowering(model).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::nn
