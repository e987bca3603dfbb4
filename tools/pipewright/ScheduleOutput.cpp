//===- ScheduleOutput.cpp - Schedules written to files --------------------===//
//
// See ScheduleOutput.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ScheduleOutput.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/files/Csv.h"
#include "tools/pipewright/OutputFile.h"

using namespace pipewright;
using namespace pipewright::schedules;

llvm::Error tool::writeSchedule(PlanFile plan, llvm::StringRef path,
                                bool withMessages, bool withSendWaits) {
  std::string text;
  if (path.ends_with_insensitive(".json")) {
    if (!withMessages)
      plan.lists.clear();
    text = llvm::formatv("{0:2}\n", planToJson(plan));
  } else if (path.ends_with_insensitive(".csv")) {
    llvm::Expected<std::string> csv =
        withMessages ? writeComputeCommsCsv(plan.schedule, plan.lists,
                                            plan.edges, withSendWaits)
                     : writeComputeOnlyCsv(plan.schedule, plan.edges);
    if (!csv)
      return csv.takeError();
    text = std::move(*csv);
  } else {
    return refuse("--write expects a file that ends in .csv or .json, but got "
                  "'{0}'",
                  path);
  }
  return writeOutput(path, [&](llvm::raw_ostream &os) { os << text; });
}
