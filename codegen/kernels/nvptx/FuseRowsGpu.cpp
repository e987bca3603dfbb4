//===- FuseRowsGpu.cpp - write kernels as launches ------------------------===//
//
// The pass around RowPlan, LaunchPlan and GpuEmitter.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/nvptx/GpuEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELFUSEROWSGPU
#include "codegen/kernels/Passes.h.inc"

namespace {

struct FuseRowsGpu : impl::KernelFuseRowsGpuBase<FuseRowsGpu> {
  using KernelFuseRowsGpuBase::KernelFuseRowsGpuBase;

  void runOnOperation() override {
    FailureOr<SmallVector<func::FuncOp>> kernels = findKernels(getOperation());
    if (failed(kernels))
      return signalPassFailure();
    getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                            UnitAttr::get(&getContext()));
    for (func::FuncOp func : *kernels)
      if (failed(fuse(func)))
        return signalPassFailure();
  }

private:
  /// The module with positions of this width.
  gpu::GPUModuleOp moduleFor(bool isSmall) {
    StringRef name = isSmall ? "kernels" : "large_kernels";
    ModuleOp module = getOperation();
    if (auto known = module.lookupSymbol<gpu::GPUModuleOp>(name))
      return known;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto created = gpu::GPUModuleOp::create(builder, module.getLoc(), name);
    Attribute width = builder.getI32IntegerAttr(isSmall ? 32 : 64);
    DataLayoutEntryInterface entry =
        DataLayoutEntryAttr::get(builder.getIndexType(), width);
    created->setAttr(DLTIDialect::kDataLayoutAttrName,
                     DataLayoutSpecAttr::get(&getContext(), entry));
    return created;
  }

  LogicalResult fuse(func::FuncOp func) {
    RowPlan plan;
    if (failed(plan.build(func)))
      return failure();
    LaunchPlan launches(plan);
    KernelSignature signature(func);
    OpBuilder builder(func);
    auto fused = func::FuncOp::create(
        builder, func.getLoc(), func.getName(),
        FunctionType::get(&getContext(), signature.parameters, {}));
    Block *entry = fused.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    SmallVector<Value> buffers = llvm::to_vector(llvm::map_range(
        entry->getArguments(),
        [](BlockArgument argument) -> Value { return argument; }));
    if (launches.scratchBytes > 0)
      buffers.push_back(memref::AllocOp::create(
          builder, func.getLoc(),
          MemRefType::get({launches.scratchBytes}, builder.getI8Type())));
    GpuEmitter emitter(plan, launches, func,
                       moduleFor(launches.isSmall && !widePositions), builder,
                       buffers);
    if (failed(emitter.emit())) {
      fused.erase();
      return failure();
    }
    func::ReturnOp::create(builder, func.getLoc());
    func.erase();
    return success();
  }
};

} // namespace
} // namespace pipewright::codegen
