//===- FormKernels.cpp - group compiled ops into kernels ------------------===//

#include "passes/nn/Passes.h"

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFORMKERNELS
#include "passes/nn/Passes.h.inc"

namespace {
struct FormKernels : impl::NNFormKernelsBase<FormKernels> {
  void runOnOperation() override {
    getOperation().emitError("nn-form-kernels is not available yet");
    signalPassFailure();
  }
};
} // namespace
} // namespace pipewright::nn
