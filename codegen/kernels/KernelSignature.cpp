//===- KernelSignature.cpp - a kernel over flat buffers -------------------===//

#include "codegen/kernels/KernelSignature.h"

#include "codegen/kernels/plan/ElementEmitter.h"
#include "dialects/nn/NNAttributeNames.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace pipewright::codegen {

/// The argument that result `i` overwrites, or -1.
static int64_t inPlaceArgument(func::FuncOp kernel, unsigned i) {
  auto argument = kernel.getResultAttrOfType<IntegerAttr>(i, nn::kInPlace);
  return argument ? argument.getInt() : -1;
}

KernelSignature::KernelSignature(func::FuncOp kernel) {
  for (Type type : kernel.getFunctionType().getInputs())
    parameters.push_back(flatBufferType(cast<RankedTensorType>(type)));
  for (auto [i, type] : llvm::enumerate(kernel.getResultTypes())) {
    int64_t argument = inPlaceArgument(kernel, i);
    resultParameters.push_back(argument < 0 ? parameters.size() : argument);
    if (argument < 0)
      parameters.push_back(flatBufferType(cast<RankedTensorType>(type)));
  }
}

FailureOr<SmallVector<func::FuncOp>> findKernels(Operation *module) {
  SmallVector<func::FuncOp> kernels;
  for (auto func : module->getRegion(0).getOps<func::FuncOp>()) {
    if (func.isExternal() || func.getNumResults() == 0 ||
        !llvm::all_of(func.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      continue;
    if (!llvm::hasSingleElement(func.getBody())) {
      func.emitOpError("expects a kernel of one block");
      return failure();
    }
    for (Type type : func.getFunctionType().getInputs())
      if (!isa<RankedTensorType>(type)) {
        func.emitOpError("expects tensors as kernel arguments, but got ")
            << type;
        return failure();
      }
    kernels.push_back(func);
  }
  return kernels;
}

/// The bytes of a constant as they lie in memory.
static DenseElementsAttr flatten(DenseElementsAttr data, MemRefType type) {
  auto flat = RankedTensorType::get(type.getShape(), type.getElementType());
  if (data.getElementType() == type.getElementType())
    return data.reshape(flat);
  SmallVector<int8_t> bytes;
  for (bool value : data.getValues<bool>())
    bytes.push_back(value);
  return DenseElementsAttr::get(flat, ArrayRef<int8_t>(bytes));
}

void createConstantBuffers(func::FuncOp kernel, Operation *symbols,
                           OpBuilder &builder,
                           DenseMap<Value, Value> &buffers) {
  unsigned number = 0;
  Location loc = kernel.getLoc();
  for (Operation &op : kernel.getBody().front()) {
    DenseElementsAttr data;
    if (!op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() != 1 ||
        !isa<RankedTensorType>(op.getResult(0).getType()) ||
        !matchPattern(op.getResult(0), m_Constant(&data)) || data.isSplat())
      continue;
    MemRefType type = flatBufferType(cast<RankedTensorType>(data.getType()));
    std::string name =
        (kernel.getName() + "_constant_" + std::to_string(number++)).str();
    if (!SymbolTable::lookupSymbolIn(symbols, name)) {
      OpBuilder top(symbols->getContext());
      top.setInsertionPointToStart(&symbols->getRegion(0).front());
      memref::GlobalOp::create(top, loc, name, top.getStringAttr("private"),
                               type, flatten(data, type), /*constant=*/true,
                               /*alignment=*/top.getI64IntegerAttr(16));
    }
    buffers[op.getResult(0)] =
        memref::GetGlobalOp::create(builder, loc, type, name);
  }
}

} // namespace pipewright::codegen
