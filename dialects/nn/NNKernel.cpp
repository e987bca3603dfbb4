//===- NNKernel.cpp - Calls of compiled kernels ---------------------------===//
//
// The checks that a launch fits its kernel, and a subview its operand.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace pipewright::nn;

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  Operation *symbol = nullptr;
  for (Operation *table = getOperation(); table && !symbol;
       table = table->getParentOp())
    if (table->hasTrait<OpTrait::SymbolTable>())
      symbol = symbolTables.lookupSymbolIn(table, getKernelAttr());
  // (C1)
  auto function = dyn_cast_or_null<FunctionOpInterface>(symbol);
  if (!function)
    return emitOpError("expects ")
           << getKernelAttr() << " to name a function, but found "
           << (symbol ? "another op" : "none");
  // (C2)
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (!llvm::all_of(function.getArgumentTypes(), isTensor) ||
      !llvm::all_of(function.getResultTypes(), isTensor))
    return success();
  if (!llvm::equal(function.getArgumentTypes(), getOperandTypes()) ||
      !llvm::equal(function.getResultTypes(), getResultTypes())) {
    InFlightDiagnostic error =
        emitOpError("expects operands and results of ")
        << function.getFunctionType() << ", but got "
        << FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
    error.attachNote(function.getLoc()) << "the kernel is here";
    return error;
  }
  return success();
}

int64_t SubviewOp::getByteOffset() {
  return static_cast<int64_t>(getStart()) *
         bytesOfElement(getX().getType().getElementType());
}

LogicalResult SubviewOp::verify() {
  RankedTensorType from = getX().getType(), to = getResult().getType();
  const auto start = static_cast<int64_t>(getStart());
  const int64_t last = from.getNumElements() - to.getNumElements();
  // (C1)
  if (start < 0 || start > last)
    return emitOpError("expects ")
           << to.getNumElements() << " elements of " << from
           << ", but got those from " << start << " on";
  // (C2)
  if (from.getElementType() != to.getElementType())
    return emitOpError("expects one element type, but got ")
           << from << " and " << to;
  // (C3)
  if (getByteOffset() % kAlignment != 0)
    return emitOpError("expects to begin at a multiple of ")
           << kAlignment << " bytes, but got byte " << getByteOffset();
  return success();
}
