//===- NNStructure.cpp - Weights and constants ----------------------------===//
//
// Weights, constants, and the checks of every use of a weight.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWeights.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

WeightOp pipewright::nn::lookupWeight(Operation *from, FlatSymbolRefAttr name,
                                      SymbolTableCollection &symbolTables) {
  for (Operation *table = from; table; table = table->getParentOp()) {
    if (!table->hasTrait<OpTrait::SymbolTable>())
      continue;
    if (Operation *symbol = symbolTables.lookupSymbolIn(table, name.getAttr()))
      return dyn_cast<WeightOp>(symbol);
  }
  return nullptr;
}

LogicalResult
pipewright::nn::verifyWeightUse(Operation *user, FlatSymbolRefAttr name,
                                Type type, std::optional<WeightRole> role,
                                SymbolTableCollection &symbolTables) {
  WeightOp weight = lookupWeight(user, name, symbolTables);
  if (!weight)
    return user->emitOpError("expects '")
           << name.getValue() << "' to name an nn.weight, but found none";
  if (weight.getTensorType() != type) {
    InFlightDiagnostic error = user->emitOpError("expects weight '")
                               << name.getValue() << "' to have type " << type
                               << ", but got " << weight.getTensorType();
    error.attachNote(weight.getLoc()) << "the weight is here";
    return error;
  }
  if (role && weight.getRole() != *role) {
    InFlightDiagnostic error = user->emitOpError("expects weight '")
                               << name.getValue() << "' to have role "
                               << stringifyWeightRole(*role) << ", but got "
                               << stringifyWeightRole(weight.getRole());
    error.attachNote(weight.getLoc()) << "the weight is here";
    return error;
  }
  return success();
}

LogicalResult WeightOp::verify() {
  // (C1)
  if (getRole() != WeightRole::Constant &&
      !getTensorType().getElementType().isF32())
    return emitOpError("expects element type 'f32' for role ")
           << stringifyWeightRole(getRole()) << ", but got " << getTensorType();
  // (C2)
  if (getFileRows()) {
    int64_t rank = getTensorType().getRank();
    if (!isLearned() || rank < 1 || rank > 2)
      return emitOpError("expects 'file_rows' only for a parameter or frozen "
                         "weight of rank 1 or 2");
    int64_t rows = getTensorType().getDimSize(0);
    if (*getFileRows() < 1 || *getFileRows() > static_cast<uint64_t>(rows))
      return emitOpError("expects 1 to ")
             << rows << " rows in the file, but got " << *getFileRows();
  }
  // (C3)
  if (getChannelsLast() && getTensorType().getRank() != 4)
    return emitOpError("expects rank 4 with channels_last, but got ")
           << getTensorType();
  // (C4)
  if (getOutputs() &&
      (!isLearned() || getTensorType().getRank() != 2 || getFileRows()))
    return emitOpError("expects 'outputs' only for a parameter or frozen "
                       "weight of rank 2 without 'file_rows'");
  return success();
}

RankedTensorType WeightOp::getFileType() {
  RankedTensorType type = channelsFirst(getTensorType(), getChannelsLast());
  if (!getFileRows())
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = *getFileRows();
  return type.clone(shape);
}

LogicalResult
ParameterOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // (C1), (C2)
  RankedTensorType type = getResult().getType();
  if (!isWorkingCopy())
    return verifyWeightUse(*this, getWeightAttr(), type, std::nullopt,
                           symbolTables);
  if (failed(verifyWeightUse(*this, getWeightAttr(),
                             f32TensorOf(getContext(), type.getShape()),
                             std::nullopt, symbolTables)))
    return failure();
  WeightOp weight = lookupWeight(*this, getWeightAttr(), symbolTables);
  if (weight.isLearned())
    return success();
  InFlightDiagnostic error = emitOpError("expects weight '")
                             << getWeight()
                             << "' to have role parameter or frozen, but got "
                             << stringifyWeightRole(weight.getRole());
  error.attachNote(weight.getLoc()) << "the weight is here";
  return error;
}

void ParameterOp::getAsmResultNames(OpAsmSetValueNameFn setNameFn) {
  // Model names carry dots and slashes, which read badly after a '%'.
  std::string name = getWeight().str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  setNameFn(getResult(), name);
}

LogicalResult
AssignStateOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // (C1), (C2)
  return verifyWeightUse(*this, getWeightAttr(), getValue().getType(),
                         WeightRole::State, symbolTables);
}

LogicalResult
AccumulateGradientOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // (C1), (C2)
  return verifyWeightUse(*this, getWeightAttr(), getGradient().getType(),
                         WeightRole::Parameter, symbolTables);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getValue().getType());
  if (!type)
    return InferenceSite{location, getOperationName()}.error(
        "expects a tensor, but got ", adaptor.getValue().getType());
  types.push_back(type);
  return success();
}

LogicalResult ConstantOp::verify() {
  // (C1)
  DenseElementsAttr value = getValue();
  if (!value.isSplat() && value.getNumElements() > kMaxElements)
    return emitOpError("expects a splat or at most ")
           << kMaxElements << " elements, but got " << value.getNumElements();
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult CausalMaskOp::verify() {
  RankedTensorType type = getResult().getType();
  // (C1)
  if (type.getRank() < 2)
    return emitOpError("expects rank 2 or more, but got ") << type;
  // (C2)
  if (type.getShape().end()[-1] != type.getShape().end()[-2])
    return emitOpError("expects last two dimensions that are equal, but got ")
           << type;
  return success();
}
