//===- AttachOptimizerKernels.cpp - The kernel of each stage's update -----===//
//
// The memory plan says how large the flat ranges of a stage are; only then is
// it known which kernel updates them.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Passes.h"
#include "codegen/kernels/Kernels.h"
#include "dialects/pipe/PipeDialect.h"

using namespace mlir;

namespace pipewright::codegen {

#define GEN_PASS_DEF_ATTACHOPTIMIZERKERNELS
#include "codegen/host/Passes.h.inc"

/// The hyper-parameters of `pipe.optimizer`, under the names of torch.optim.
static FailureOr<OptimizerSpec> readSpec(ModuleOp module) {
  auto attribute =
      module->getAttrOfType<DictionaryAttr>(pipe::PipeDialect::kOptimizer);
  OptimizerSpec spec;
  if (!attribute)
    return spec;
  if (auto name = attribute.getAs<StringAttr>("name"))
    spec.name = name.str();
  auto number = [&](StringRef key, double &field) {
    if (auto value = attribute.getAs<FloatAttr>(key))
      field = value.getValueAsDouble();
  };
  number("momentum", spec.momentum);
  number("beta1", spec.beta1);
  number("beta2", spec.beta2);
  number("alpha", spec.alpha);
  number("eps", spec.epsilon);
  number("weight_decay", spec.weightDecay);
  if (auto nesterov = attribute.getAs<BoolAttr>("nesterov"))
    spec.nesterov = nesterov.getValue();
  return spec;
}

namespace {

struct AttachOptimizerKernels
    : impl::AttachOptimizerKernelsBase<AttachOptimizerKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<OptimizerSpec> spec = readSpec(module);
    if (failed(spec))
      return signalPassFailure();
    for (auto arena : module.getOps<pipe::ArenaOp>()) {
      for (auto optimizer : arena.getOps<pipe::OptimizerOp>())
        if (failed(attach(module, optimizer, *spec)))
          return signalPassFailure();
      for (auto place : arena.getOps<pipe::PlaceOp>())
        if (isSetByOwner(place))
          attachLowering(module, place);
    }
  }

  /// A copy of a tied weight whose bf16 form no optimizer writes.
  static bool isSetByOwner(pipe::PlaceOp place) {
    return place.getLowered() && place.getGradient() && !place.isUpdated() &&
           !place.getKernelAttr();
  }

  ModuleOp kernelsOf(ModuleOp module) {
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

  void attachLowering(ModuleOp module, pipe::PlaceOp place) {
    int64_t size = place.getBuffer().getBytes() / 4;
    place.setKernelAttr(referTo(buildLowerKernel(kernelsOf(module), size)));
  }

  LogicalResult attach(ModuleOp module, pipe::OptimizerOp optimizer,
                       const OptimizerSpec &spec) {
    if (optimizer.getKernelAttr())
      return success();
    if (optimizer.getStates().size() != spec.numStates())
      return optimizer.emitOpError()
             << "expects " << spec.numStates() << " states for " << spec.name
             << ", but got " << optimizer.getStates().size();
    int64_t size = optimizer.getWeights().getBytes() / 4;
    FailureOr<func::FuncOp> kernel =
        buildOptimizerKernel(kernelsOf(module), spec, size,
                             /*lowers=*/optimizer.getLowered().has_value());
    if (failed(kernel))
      return failure();
    optimizer.setKernelAttr(referTo(*kernel));
    return success();
  }
};

} // namespace
} // namespace pipewright::codegen
