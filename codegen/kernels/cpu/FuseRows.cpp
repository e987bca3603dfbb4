//===- FuseRows.cpp - write kernels as loops over rows --------------------===//
//
// The pass around RowPlan and RowEmitter: it changes the functions' types from
// tensors to flat memrefs and gives constants a place in memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/KernelSignature.h"
#include "codegen/kernels/Passes.h"
#include "codegen/kernels/cpu/RowEmitter.h"
#include "dialects/nn/NNAttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELFUSEROWS
#include "codegen/kernels/Passes.h.inc"

namespace {

LogicalResult fuse(func::FuncOp func) {
  RowPlan plan;
  if (failed(plan.build(func)))
    return failure();
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (func.getResultAttr(i, nn::kAdded))
      return func.emitOpError("adds result ")
             << i << " to what is there, which kernels of CPUs do not";
  KernelSignature signature(func);
  Location loc = func.getLoc();
  OpBuilder builder(func);
  auto fused = func::FuncOp::create(
      builder, loc, func.getName(),
      FunctionType::get(func.getContext(), signature.parameters, {}));
  for (unsigned i = 0; i < signature.parameters.size(); ++i)
    fused.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                     builder.getUnitAttr());
  Block *entry = fused.addEntryBlock();
  builder.setInsertionPointToStart(entry);

  DenseMap<Value, Value> buffers;
  for (BlockArgument argument : func.getArguments())
    buffers[argument] = entry->getArgument(argument.getArgNumber());
  SmallVector<Value> results =
      llvm::map_to_vector(signature.resultParameters, [&](unsigned i) -> Value {
        return entry->getArgument(i);
      });
  createConstantBuffers(func, func->getParentOp(), builder, buffers);
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
    FailureOr<SmallVector<func::FuncOp>> kernels = findKernels(getOperation());
    if (failed(kernels))
      return signalPassFailure();
    for (func::FuncOp func : *kernels)
      if (failed(fuse(func)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
