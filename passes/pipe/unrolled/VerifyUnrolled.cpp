//===- VerifyUnrolled.cpp - The contract of the unrolled level ------------===//
//
// Every task of every micro-batch stands in the step once, and reads what its
// stage's body says it reads.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/unrolled/VerifyTasks.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYUNROLLED
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class VerifyUnrolled
    : public pipe::impl::PipeVerifyUnrolledBase<VerifyUnrolled> {
public:
  using PipeVerifyUnrolledBase::PipeVerifyUnrolledBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Stages> stages = Stages::read(getOperation());
    FailureOr<int64_t> microBatches = microBatchesOf(getOperation());
    if (failed(stages) || failed(microBatches))
      return signalPassFailure();
    int64_t trainingSteps = 0;
    for (auto step : getOperation().getOps<StepOp>()) {
      trainingSteps += step.getMode() == StepMode::train;
      SmallVector<Operation *> ops;
      for (Operation &op : *step.getBody())
        ops.push_back(&op);
      if (failed(
              verifyTasks(*stages, step.getMode(), *microBatches, step, ops)))
        signalPassFailure();
    }
    if (trainingSteps != 1) {
      getOperation().emitError("expects one training step, but got ")
          << trainingSteps;
      signalPassFailure();
    }
  }
};

} // namespace
