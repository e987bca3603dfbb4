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

#include <limits>

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFUSECOMPOSITES
#include "passes/nn/Passes.h.inc"

namespace {

struct FuseComposites : impl::NNFuseCompositesBase<FuseComposites> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateGeluPatterns(patterns);
    populateGroupNormPatterns(patterns);
    populateLayerNormPatterns(patterns);
    populatePreciseFormPatterns(patterns);
    populateSoftmaxPatterns(patterns);
    int64_t longest = longestAttention > 0
                          ? longestAttention
                          : std::numeric_limits<int64_t>::max();
    populateAttentionPatterns(patterns, longest);
    populateWideHeadsPatterns(patterns, longest);
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
