//===- StageTimes.cpp - Fuzz target: times of stages, by hand -------------===//
//
// What is read, as a table and as JSON, is what a simulation can take.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/InputFile.h"

#include "passes/schedules/Policy.h"
#include "passes/schedules/files/GivenTimes.h"

#include "llvm/Support/raw_ostream.h"

using namespace pipewright;

static void readAs(const uint8_t *data, size_t size, const char *name) {
  auto times = schedules::readStageTimes(fuzz::inputFile(data, size, name));
  if (!times) {
    llvm::consumeError(times.takeError());
    return;
  }
  for (int64_t ranks : {1, 4}) {
    auto schedule = schedules::oneFOneBPolicy().build({ranks, ranks, 2});
    auto costs = times->costsOf(*schedule);
    // Any number of rows is for one stage.
    if (!costs && ranks == 1)
      std::abort();
    if (!costs) {
      llvm::consumeError(costs.takeError());
      continue;
    }
    if (llvm::Error error = schedules::checkCosts(*schedule, *costs)) {
      llvm::errs() << error << "\n";
      std::abort();
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  readAs(data, size, "times.csv");
  readAs(data, size, "times.json");
  return 0;
}
