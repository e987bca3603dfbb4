//===- KernelPipeline.cpp - from nn kernels to the LLVM dialect -----------===//

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/linalg/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace pipewright::codegen {

void buildKernelLoweringPipeline(OpPassManager &pm) {
  pm.addPass(nn::createConvertNNToLinalg());
  // Ops that share a kernel may count the same labels.
  pm.addPass(createCSEPass());
  pm.addPass(createKernelFuseRows());
  // Loops of one step and repeated index arithmetic are easier to see before
  // formulas multiply the ops.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createKernelSelectBuffers());
  pm.addPass(createKernelApproximateMath());
  pm.addPass(createKernelExpandBFloat16());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertMathToLLVMPass());
  // What math has no LLVM intrinsic for is a call of the C library.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  // Now for the fields of descriptors.
  pm.addPass(createKernelSelectBuffers());
}

void registerKernelPipelines() {
  PassPipelineRegistration<>(
      "pipewright-kernel-pipeline",
      "lower a module of kernel functions of nn ops to the LLVM dialect",
      buildKernelLoweringPipeline);
  PassPipelineRegistration<>(
      "pipewright-gpu-kernel-pipeline",
      "lower a module of kernel functions of nn ops to GPU kernels in the LLVM "
      "dialect",
      [](OpPassManager &pm) { buildGpuKernelLoweringPipeline(pm); });
}

} // namespace pipewright::codegen
