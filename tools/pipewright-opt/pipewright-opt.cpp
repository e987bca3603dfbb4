//===- pipewright-opt.cpp - Run passes on IR text -------------------------===//
//
// The tool behind the lit tests, and for people who want to see what one pass
// does. It knows the dialects that the compiler uses and no others, so that a
// pass which forgets to declare one is found out.
//
//===----------------------------------------------------------------------===//

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
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/call/Passes.h"
#include "passes/nn/Passes.h"
#include "passes/pipe/Passes.h"
#include "passes/pipelines/Pipelines.h"

/// The dialects that some level of the compiler is made of.
static void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<pipewright::nn::NNDialect, pipewright::call::CallDialect,
                  pipewright::pipe::PipeDialect>();
  registry.insert<mlir::arith::ArithDialect,
                  mlir::bufferization::BufferizationDialect, mlir::DLTIDialect,
                  mlir::LLVM::LLVMDialect, mlir::func::FuncDialect,
                  mlir::gpu::GPUDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect>();
}

/// Our passes and pipelines, and the upstream ones that tests lean on.
static void registerPasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  pipewright::codegen::registerHostPasses();
  pipewright::codegen::registerKernelPipelines();
  pipewright::codegen::registerKernelsPasses();
  pipewright::call::registerCallPasses();
  pipewright::nn::registerLinalgPasses();
  pipewright::nn::registerNNPasses();
  pipewright::pipe::registerPipePasses();
  pipewright::registerPipelines();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs Pipewright's passes on IR text\n", registry));
}
