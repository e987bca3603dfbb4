//===- GpuKernels.cpp - compile kernels to PTX ----------------------------===//

#include "codegen/kernels/nvptx/GpuKernels.h"

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/linalg/Passes.h"
#include "codegen/kernels/nvptx/EmitPtx.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace pipewright::codegen {

void buildGpuKernelLoweringPipeline(OpPassManager &pm, bool widePositions) {
  pm.addPass(nn::createConvertNNToLinalg());
  // Ops that share a kernel may count the same labels.
  pm.addPass(createCSEPass());
  pm.addPass(createKernelFuseRowsGpu({widePositions}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createKernelApproximateMathGpu());
  kernels.addPass(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createKernelGpuToNvvm());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

static int64_t number(Value value) {
  APInt result;
  bool known = matchPattern(value, m_ConstantInt(&result));
  assert(known && "launches have constant sizes");
  return known ? result.getSExtValue() : 0;
}

/// Reads the launches off the function that makes them.
static GpuKernel describe(func::FuncOp kernel) {
  GpuKernel description;
  description.name = kernel.getName().str();
  for (auto scratch : kernel.getOps<memref::AllocOp>())
    description.scratchBytes = scratch.getType().getNumElements();
  for (auto launch : kernel.getOps<gpu::LaunchFuncOp>()) {
    Value shared = launch.getDynamicSharedMemorySize();
    description.launches.push_back(
        {launch.getKernelName().str(), number(launch.getGridSizeX()),
         number(launch.getBlockSizeX()), shared ? number(shared) : 0});
  }
  return description;
}

FailureOr<GpuKernels> compileGpuKernels(ModuleOp kernels,
                                        ArrayRef<int> architectures,
                                        bool widePositions) {
  OwningOpRef<ModuleOp> module(kernels.clone());
  module->setSymNameAttr({});
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  buildGpuKernelLoweringPipeline(pm, widePositions);
  if (failed(pm.run(*module)))
    return failure();
  GpuKernels result;
  for (auto kernel : module->getOps<func::FuncOp>())
    if (!kernel.isExternal())
      result.kernels.push_back(describe(kernel));
  for (int architecture : architectures) {
    FailureOr<std::string> text = emitPtx(*module, architecture);
    if (failed(text))
      return failure();
    result.ptx.push_back({architecture, std::move(*text)});
  }
  return result;
}

} // namespace pipewright::codegen
