//===- KernelSteps.cpp - Kernels on their way to code ---------------------===//
//
// See KernelSteps.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/KernelSteps.h"

#include "codegen/kernels/linalg/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace pipewright::tool {

OwningOpRef<ModuleOp> kernelsOf(ModuleOp module) {
  auto kernels = module.lookupSymbol<ModuleOp>("kernels");
  return kernels ? kernels.clone() : ModuleOp::create(module.getLoc());
}

LogicalResult lowerKernels(Compilation &compilation, ModuleOp kernels,
                           const CompileOptions &options) {
  // Nested modules carry a symbol name that the LLVM dialect has no use for.
  kernels.setSymNameAttr({});
  return compilation.run("kernels", kernels, [&](OpPassManager &pm) {
    if (options.emission == Emission::Linalg) {
      pm.addPass(nn::createConvertNNToLinalg());
      pm.addPass(createCSEPass());
    } else if (options.emission == Emission::Llvm) {
      options.target->buildKernelLowering(pm);
    }
  });
}

} // namespace pipewright::tool
