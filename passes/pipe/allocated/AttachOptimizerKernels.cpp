//===- AttachOptimizerKernels.cpp - The kernel of each stage's update -----===//
//
// The memory plan says how large the flat ranges of a stage are; only then is
// it known which kernel updates them. An optimizer that works weight by weight
// has a kernel at each place, one that takes matrices two at the place of each.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/nn/kernels/OptimizerKernels.h"
#include "passes/pipe/Passes.h"

using namespace mlir;

namespace pipewright::pipe {

#define GEN_PASS_DEF_PIPEATTACHOPTIMIZERKERNELS
#include "passes/pipe/Passes.h.inc"

namespace {

class AttachOptimizerKernels
    : public impl::PipeAttachOptimizerKernelsBase<AttachOptimizerKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto arena : module.getOps<ArenaOp>()) {
      if (failed(attachUpdates(arena)))
        return signalPassFailure();
      for (auto place : arena.getOps<PlaceOp>())
        if (isSetByOwner(place))
          place.setKernelAttr(referTo(nn::buildRoundingKernel(
              kernels(), place.getBuffer().getBytes() / 4)));
    }
  }

private:
  /// A copy of a tied weight whose bf16 form no optimizer writes.
  static bool isSetByOwner(PlaceOp place) {
    return place.getRounded() && place.getGradient() && !place.isUpdated() &&
           !place.getKernelAttr();
  }

  ModuleOp kernels() {
    ModuleOp module = getOperation();
    if (auto kernels = module.lookupSymbol<ModuleOp>("kernels"))
      return kernels;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    return ModuleOp::create(builder, module.getLoc(), "kernels");
  }

  SymbolRefAttr referTo(func::FuncOp kernel) {
    return SymbolRefAttr::get(
        StringAttr::get(&getContext(), "kernels"),
        {FlatSymbolRefAttr::get(kernel.getSymNameAttr())});
  }

  /// What computes the norm sees gradients that are no finite numbers.
  bool maySkip() { return programOf(getOperation()).clipNorm != nullptr; }

  LogicalResult attachUpdates(ArenaOp arena) {
    for (auto optimizer : arena.getOps<OptimizerOp>()) {
      if (optimizer.getKernelsAttr())
        continue;
      nn::OptimizerAttr spec = programOf(getOperation()).optimizer;
      if (!spec)
        return getOperation().emitError("expects '")
               << PipeDialect::kProgram << "' to have an 'optimizer'";
      nn::OptimizerChoice choice = spec.getChoice();
      size_t numStates = choice.states().size();
      if (optimizer.getStates().size() != numStates)
        return optimizer.emitOpError()
               << "expects " << numStates << " states for " << choice.row->name
               << ", but got " << optimizer.getStates().size();
      if (choice.row->granularity == nn::Granularity::Weight) {
        attachByWeight(arena, optimizer, spec);
        continue;
      }
      SmallVector<Attribute> updates;
      for (const auto &bucket : optimizer.bucketsOfKernels())
        updates.push_back(referTo(nn::buildUpdateKernel(
            kernels(), spec, bucket.bytes / optimizer.countShards() / 4,
            optimizer.getRounded().has_value(), maySkip())));
      if (!updates.empty())
        optimizer.setKernelsAttr(ArrayAttr::get(&getContext(), updates));
      if (optimizer.getElementwise())
        attachToMatrices(arena, optimizer, spec);
    }
    return success();
  }

  void attachToMatrices(ArenaOp arena, OptimizerOp optimizer,
                        nn::OptimizerAttr spec) {
    for (auto place : arena.getOps<PlaceOp>()) {
      if (!optimizer.takesAsMatrix(place) || place.getKernelAttr())
        continue;
      auto weight = getOperation().lookupSymbol<nn::WeightOp>(
          place.getWeightAttr().getAttr());
      place.setKernelAttr(referTo(
          nn::buildDirectionKernel(kernels(), spec, weight, maySkip())));
      place.setFinishAttr(referTo(nn::buildFinishKernel(
          kernels(), spec, weight, place.getRounded().has_value(), maySkip())));
    }
  }

  void attachByWeight(ArenaOp arena, OptimizerOp optimizer,
                      nn::OptimizerAttr spec) {
    for (auto place : arena.getOps<PlaceOp>()) {
      if (place.getStage() != optimizer.getStage() || !place.isUpdated() ||
          place.getKernelAttr())
        continue;
      auto weight = getOperation().lookupSymbol<nn::WeightOp>(
          place.getWeightAttr().getAttr());
      // Kernels have loops over at least one dimension.
      SmallVector<int64_t> shape(weight.getTensorType().getShape());
      if (shape.empty())
        shape.push_back(1);
      place.setKernelAttr(referTo(nn::buildUpdateKernel(
          kernels(), spec, shape, place.getRounded().has_value(), maySkip())));
    }
  }
};

} // namespace
} // namespace pipewright::pipe
