//===- PlanJson.cpp - Fuzz target: plans ----------------------------------===//

#include "test/fuzz/Schedules.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto plan = schedules::parsePlan(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz.json");
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return 0;
  }
  fuzz::checkPlan(std::move(*plan));
  return 0;
}
