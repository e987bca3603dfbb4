//===- GpuToNvvm.cpp - GPU kernels to the LLVM dialect --------------------===//
//
// Upstream's conversion patterns. Ops of the math dialect are gone before: what
// is left of them here would become calls of libdevice.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELGPUTONVVM
#include "codegen/kernels/Passes.h.inc"

namespace {

struct GpuToNvvm : impl::KernelGpuToNvvmBase<GpuToNvvm> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    WalkResult walk = module.walk([](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("has no instruction on a GPU");
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    LowerToLLVMOptions options(
        &getContext(),
        DataLayout(cast<DataLayoutOpInterface>(module.getOperation())));
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(&getContext(), options);
    configureGpuToNVVMTypeConverter(types);
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    populateVectorToLLVMConversionPatterns(types, patterns);
    populateGpuToNVVMConversionPatterns(types, patterns, /*benefit=*/0);
    LLVMConversionTarget target(getContext());
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    target.addLegalDialect<NVVM::NVVMDialect>();
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    // LLVM has no layout of index.
    module->removeAttr(DLTIDialect::kDataLayoutAttrName);
  }
};

} // namespace
} // namespace pipewright::codegen
