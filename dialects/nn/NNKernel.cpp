//===- NNKernel.cpp - Calls of compiled kernels ---------------------------===//
//
// The check that a launch fits its kernel.
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
