//===- ScheduleCsv.cpp - Fuzz target: schedules in PyTorch's CSV ----------===//

#include "test/fuzz/Schedules.h"

#include "passes/schedules/files/Csv.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto csv = schedules::parseCsv(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz.csv");
  if (!csv) {
    llvm::consumeError(csv.takeError());
    return 0;
  }
  schedules::PlanFile plan;
  plan.schedule = std::move(csv->schedule);
  plan.lists = std::move(csv->lists);
  fuzz::checkPlan(std::move(plan));
  return 0;
}
