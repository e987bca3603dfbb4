//===- PrintTimetable.cpp - The order of a training step, drawn -----------===//
//
// Prints to standard output as comments, so that the module after it can still
// be read by other tools.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/schedules/Timetable.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEPRINTTIMETABLE
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class PrintTimetable
    : public pipe::impl::PipePrintTimetableBase<PrintTimetable> {
public:
  using PipePrintTimetableBase::PipePrintTimetableBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Stages> stages = Stages::read(getOperation());
    if (failed(stages))
      return signalPassFailure();
    FailureOr<pipewright::schedules::Schedule> schedule =
        readSchedule(getOperation(), *stages, StepMode::train);
    if (failed(schedule))
      return signalPassFailure();
    std::string text = pipewright::schedules::printTimetable(*schedule);
    for (llvm::StringRef line :
         llvm::split(llvm::StringRef(text).rtrim(), '\n'))
      llvm::outs() << "// " << line << "\n";
    llvm::outs().flush();
  }
};

} // namespace
