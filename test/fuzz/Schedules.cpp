//===- Schedules.cpp - Checking a schedule as `check` does ----------------===//

#include "test/fuzz/Schedules.h"

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/files/Csv.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>

using namespace pipewright;
using namespace pipewright::schedules;

/// Proves a plan that was read; gives it messages if it has none.
static llvm::Error prove(PlanFile &plan, const TaskCosts &costs) {
  if (llvm::Error error = checkSchedule(plan.schedule, plan.edges))
    return error;
  if (plan.lists.empty()) {
    llvm::Expected<InstructionLists> lists =
        orderMessages(plan.schedule, costs, plan.edges);
    if (!lists)
      return lists.takeError();
    plan.lists = std::move(*lists);
  }
  if (llvm::Error error = checkDataFlow(plan.schedule, plan.lists, plan.edges))
    return error;
  return checkInstructions(plan.lists);
}

static void require(bool condition, const char *what, llvm::StringRef detail) {
  if (condition)
    return;
  llvm::errs() << "error: " << what << ": " << detail << "\n";
  std::abort();
}

/// `refused` says why, or nothing.
static std::string textOf(llvm::Error refused) {
  return refused ? llvm::toString(std::move(refused)) : std::string();
}

void fuzz::checkPlan(PlanFile plan) {
  const TaskCosts costs =
      plan.costs ? *plan.costs : TaskCosts::uniform(plan.schedule.stages, 1, 2);
  if (!textOf(prove(plan, costs)).empty())
    return;
  for (const ChannelLayoutInfo &info : channelLayouts)
    textOf(checkInstructions(plan.lists, Channels{info.layout}));
  textOf(checkMemory(plan.schedule, costs, 2, plan.edges));
  if (auto ideal = simulate(plan.schedule, costs, plan.edges); !ideal)
    textOf(ideal.takeError());
  if (auto queued = simulateInstructions(plan.lists, costs); !queued)
    textOf(queued.takeError());
  if (auto csv = writeComputeCommsCsv(plan.schedule, plan.lists, plan.edges);
      !csv)
    textOf(csv.takeError());

  std::string json = llvm::formatv("{0}", planToJson(plan));
  llvm::Expected<PlanFile> again = parsePlan(json, "written.json");
  require(bool(again), "a proven plan does not parse",
          again ? "" : textOf(again.takeError()));
  std::string refused = textOf(prove(*again, costs));
  require(refused.empty(), "a proven plan is refused when read again", refused);
}
