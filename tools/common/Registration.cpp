//===- Registration.cpp - Dialects and passes by name ---------------------===//
//
// See Registration.h.
//
//===----------------------------------------------------------------------===//

#include "tools/common/Registration.h"

#include "codegen/host/Passes.h"
#include "codegen/kernels/Passes.h"
#include "codegen/kernels/linalg/Passes.h"
#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/call/Passes.h"
#include "passes/nn/Passes.h"
#include "passes/pipe/Passes.h"
#include "passes/pipelines/Pipelines.h"

namespace pipewright::tool {

void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<nn::NNDialect, call::CallDialect, pipe::PipeDialect>();
  registry.insert<mlir::arith::ArithDialect,
                  mlir::bufferization::BufferizationDialect, mlir::DLTIDialect,
                  mlir::LLVM::LLVMDialect, mlir::func::FuncDialect,
                  mlir::gpu::GPUDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect>();
}

static void registerOnce() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  codegen::registerHostPasses();
  codegen::registerKernelPipelines();
  codegen::registerKernelsPasses();
  call::registerCallPasses();
  nn::registerLinalgPasses();
  nn::registerNNPasses();
  pipe::registerPipePasses();
  registerPipelines();
}

void registerAllPasses() {
  [[maybe_unused]] static const bool done = (registerOnce(), true);
}

} // namespace pipewright::tool
