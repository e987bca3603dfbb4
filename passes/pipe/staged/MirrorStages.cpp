//===- MirrorStages.cpp - A second copy of every stage --------------------===//
//
// For schedules that send micro-batches through the ranks both ways at once.
// That the copies' weights stay equal is left to what tied weights have
// already: gradients that all holders sum together, or one owner.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Stages.h"

#include "mlir/IR/IRMapping.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEMIRRORSTAGES
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class MirrorStages : public pipe::impl::PipeMirrorStagesBase<MirrorStages> {
public:
  using PipeMirrorStagesBase::PipeMirrorStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    if (stages->copies() > 1 || stages->size() == 0)
      return;
    if (failed(checkModule(module, *stages)))
      return signalPassFailure();
    mirror(*stages);
  }

private:
  static LogicalResult checkModule(ModuleOp module, const Stages &stages) {
    if (!module.getOps<StepOp>().empty() || !module.getOps<RankOp>().empty())
      return module.emitError(
          "has its tasks written out already, so its stages cannot be copied");
    FailureOr<int64_t> microBatches = microBatchesOf(module);
    if (failed(microBatches))
      return failure();
    if (*microBatches % 2 != 0)
      return module.emitError("expects an even number of micro-batches for two "
                              "copies of the model, but got ")
             << *microBatches;
    for (const WeightGroup &group : stages.weights())
      if (group.weight.getRole() == nn::WeightRole::State)
        return group.weight.emitOpError(
            "holds running statistics, which two copies of the model would "
            "each collect from half of the micro-batches; use a schedule with "
            "one copy of the model");
    return success();
  }

  void mirror(const Stages &stages) {
    OpBuilder builder(&getContext());
    SymbolTable symbols(getOperation());
    builder.setInsertionPointAfter(stages[stages.size() - 1]);
    AttrTypeReplacer replacer;
    SmallVector<StageOp> copies;
    for (int32_t stage = 0; stage < stages.size(); ++stage) {
      StageOp op = stages[stage];
      auto copy = cast<StageOp>(builder.clone(*op));
      copy.setSymName("s" + std::to_string(stages.size() + stage));
      symbols.insert(copy);
      copy.setMirrorsAttr(stages.nameOf(stage));
      if (EvaluateOp evaluate = copy.getEvaluate())
        evaluate.erase();
      copies.push_back(copy);
    }
    replacer.addReplacement([&](OutputAttr source) -> Attribute {
      StageOp copy = copies[stages.numberOf(source.getStage())];
      return OutputAttr::get(&getContext(),
                             FlatSymbolRefAttr::get(copy.getSymNameAttr()),
                             source.getIndex());
    });
    for (StageOp copy : copies)
      for (Operation &body : *copy.getBody())
        replacer.replaceElementsIn(&body);
  }
};

} // namespace
