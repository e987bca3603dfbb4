//===- FreezeSmall.cpp - nn-freeze-small ----------------------------------===//
//
// Only roles change: what reads a weight reads it as before.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFREEZESMALL
#include "passes/nn/Passes.h.inc"

namespace {

class NNFreezeSmall : public impl::NNFreezeSmallBase<NNFreezeSmall> {
public:
  using NNFreezeSmallBase::NNFreezeSmallBase;

  void runOnOperation() override {
    SmallVector<WeightOp> small;
    bool someAreLeft = false;
    for (WeightOp weight : getOperation().getOps<WeightOp>()) {
      if (weight.getRole() != WeightRole::Parameter)
        continue;
      if (weight.getTensorType().getNumElements() < least)
        small.push_back(weight);
      else
        someAreLeft = true;
    }
    if (!small.empty() && !someAreLeft) {
      getOperation().emitError("nn-freeze-small expects a weight of at least ")
          << int64_t(least) << " elements to train, but has none";
      return signalPassFailure();
    }
    for (WeightOp weight : small)
      weight.setRole(WeightRole::Frozen);
  }
};

} // namespace
} // namespace pipewright::nn
