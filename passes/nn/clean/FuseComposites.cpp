//===- FuseComposites.cpp - nn-fuse-composites ----------------------------===//
//
// Recognises what exporters spell out in several ops and nn has one op for.
// Each composite has a file of its own in the folder beside this one.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFUSECOMPOSITES
#include "passes/nn/Passes.h.inc"

namespace {

struct FuseComposites : impl::NNFuseCompositesBase<FuseComposites> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateGeluPatterns(patterns);
    populateLayerNormPatterns(patterns);
    populatePreciseFormPatterns(patterns);
    populateSoftmaxPatterns(patterns);
    populateAttentionPatterns(patterns);
    populateGroupedHeadsPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // No pattern undoes what another does, so this ends by itself.
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(applyPatternsGreedily(function, frozen, config)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::nn
