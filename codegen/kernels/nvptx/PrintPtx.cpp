//===- PrintPtx.cpp - show the PTX of a module's kernels ------------------===//

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/nvptx/EmitPtx.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELPRINTPTX
#include "codegen/kernels/Passes.h.inc"

namespace {
struct PrintPtx : impl::KernelPrintPtxBase<PrintPtx> {
  using Base::Base;
  void runOnOperation() override {
    FailureOr<std::string> ptx = emitPtx(getOperation(), architecture);
    if (failed(ptx))
      return signalPassFailure();
    llvm::outs() << *ptx;
  }
};
} // namespace
} // namespace pipewright::codegen
