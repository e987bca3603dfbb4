//===- FuseRows.cpp - write kernels as loops over rows --------------------===//
//
// The pass around RowPlan and RowEmitter: it changes the functions' types from
// tensors to flat memrefs and gives constants a place in memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELFUSEROWS
#include "codegen/kernels/Passes.h.inc"

namespace {

/// The argument that result `i` overwrites, or -1.
int64_t inPlaceArgument(func::FuncOp func, unsigned i) {
  auto argument = func.getResultAttrOfType<IntegerAttr>(i, "nn.in_place");
  return argument ? argument.getInt() : -1;
}

/// Puts a constant that is not a splat into a global and returns its buffer.
Value createGlobal(OpBuilder &builder, Location loc, ModuleOp module,
                   StringRef kernel, unsigned number, DenseElementsAttr data) {
  MemRefType type = flatBufferType(cast<RankedTensorType>(data.getType()));
  auto flat = RankedTensorType::get(type.getShape(), type.getElementType());
  DenseElementsAttr values = data.reshape(
      RankedTensorType::get(type.getShape(), data.getElementType()));
  if (data.getElementType() != type.getElementType()) {
    SmallVector<int8_t> bytes;
    for (bool value : data.getValues<bool>())
      bytes.push_back(value);
    values = DenseElementsAttr::get(flat, ArrayRef<int8_t>(bytes));
  }
  std::string name = (kernel + "_constant_" + std::to_string(number)).str();
  OpBuilder top = OpBuilder::atBlockEnd(module.getBody());
  memref::GlobalOp::create(top, loc, name, top.getStringAttr("private"), type,
                           values, /*constant=*/true,
                           /*alignment=*/IntegerAttr());
  return memref::GetGlobalOp::create(builder, loc, type, name);
}

LogicalResult fuse(func::FuncOp func) {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitOpError("expects a kernel of one block");
  for (Type type : func.getFunctionType().getInputs())
    if (!isa<RankedTensorType>(type))
      return func.emitOpError("expects tensors as kernel arguments, but got ")
             << type;
  RowPlan plan;
  if (failed(plan.build(func)))
    return failure();

  MLIRContext *context = func.getContext();
  Location loc = func.getLoc();
  SmallVector<Type> types;
  for (Type type : func.getFunctionType().getInputs())
    types.push_back(flatBufferType(cast<RankedTensorType>(type)));
  unsigned inputs = types.size();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    if (inPlaceArgument(func, i) < 0)
      types.push_back(flatBufferType(cast<RankedTensorType>(type)));

  OpBuilder builder(func);
  auto fused =
      func::FuncOp::create(builder, loc, func.getName(),
                           FunctionType::get(context, types, TypeRange()));
  for (unsigned i = 0; i < types.size(); ++i)
    fused.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                     builder.getUnitAttr());
  Block *entry = fused.addEntryBlock();
  builder.setInsertionPointToStart(entry);

  DenseMap<Value, Value> buffers;
  for (auto [argument, buffer] :
       llvm::zip(func.getArguments(), entry->getArguments()))
    buffers[argument] = buffer;
  SmallVector<Value> results;
  unsigned next = inputs;
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    int64_t argument = inPlaceArgument(func, i);
    results.push_back(argument < 0 ? entry->getArgument(next++)
                                   : entry->getArgument(argument));
  }
  unsigned constants = 0;
  for (Operation &op : func.getBody().front()) {
    DenseElementsAttr data;
    if (op.hasTrait<OpTrait::ConstantLike>() && op.getNumResults() == 1 &&
        isa<RankedTensorType>(op.getResult(0).getType()) &&
        matchPattern(op.getResult(0), m_Constant(&data)) && !data.isSplat())
      buffers[op.getResult(0)] =
          createGlobal(builder, loc, func->getParentOfType<ModuleOp>(),
                       func.getName(), constants++, data);
  }
  RowEmitter emitter(plan, builder, loc, buffers, results);
  if (failed(emitter.emit())) {
    fused.erase();
    return failure();
  }
  func::ReturnOp::create(builder, loc);
  func.erase();
  return success();
}

struct FuseRows : impl::KernelFuseRowsBase<FuseRows> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() &&
          llvm::all_of(func.getResultTypes(), llvm::IsaPred<RankedTensorType>))
        if (func.getNumResults() > 0)
          kernels.push_back(func);
    for (func::FuncOp func : kernels)
      if (failed(fuse(func)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
