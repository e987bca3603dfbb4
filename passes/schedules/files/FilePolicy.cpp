//===- FilePolicy.cpp - A schedule out of a file as a policy ----*- C++ -*-===//
//
// See FilePolicy.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/FilePolicy.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/StashMeter.h"
#include "passes/schedules/files/Csv.h"
#include "support/InputFile.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace pipewright::schedules;

namespace {

class FilePolicy final : public Policy {
public:
  FilePolicy(llvm::StringRef path, const Schedule &schedule,
             llvm::ArrayRef<StageEdge> edges)
      : path(path.str()), schedule(schedule), edges(edges.vec()) {
    for (std::vector<Task> &tasks : this->schedule.order) {
      for (const Task &task : tasks)
        isSplit |= task.kind == TaskKind::WeightGradient;
      // Policy::build appends them again.
      if (schedule.weightRule == WeightRule::Synchronous)
        llvm::erase_if(tasks, [](const Task &task) {
          return task.kind == TaskKind::Update;
        });
    }
  }

  llvm::StringRef name() const override { return path; }
  llvm::StringRef summary() const override {
    return "the order that this file says";
  }
  llvm::StringRef paper() const override { return "read from a file"; }
  llvm::StringRef bubbleFormula() const override {
    return "what its order leaves";
  }
  llvm::StringRef memoryFormula() const override {
    return "what its order keeps";
  }
  ScheduleOptions example() const override {
    return {schedule.ranks, modelStages(), schedule.microBatches};
  }
  int64_t defaultLoops() const override {
    return std::max<int64_t>(1, modelStages() / schedule.ranks);
  }
  bool splitsBackward() const override { return isSplit; }
  int64_t copies() const override { return schedule.copies; }
  WeightRule weightRule() const override { return schedule.weightRule; }
  int64_t updates(const ScheduleOptions &options) const override {
    return schedule.updates;
  }
  llvm::ArrayRef<StageTasks> stageTasks() const override {
    return schedule.stageTasks;
  }
  bool trains() const override { return !schedule.forwardOnly; }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override;

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override;
  llvm::Error orderRanks(Schedule &result,
                         const ScheduleOptions &options) const override {
    if (llvm::Error error = checkModel(options.edges))
      return error;
    result.order = schedule.order;
    return llvm::Error::success();
  }

private:
  int64_t modelStages() const { return schedule.stages / schedule.copies; }
  /// Whether the stages of a model hand each other what the file says, if
  /// both are known.
  llvm::Error checkModel(llvm::ArrayRef<StageEdge> modelEdges) const;
  /// The options that fit, as the user types them.
  std::string fittingOptions() const;

  std::string path;
  Schedule schedule;
  std::vector<StageEdge> edges;
  bool isSplit = false;
};

} // namespace

int64_t FilePolicy::maxInFlight(const ScheduleOptions &options,
                                int64_t rank) const {
  TaskCosts costs = TaskCosts::uniform(schedule.stages);
  StashMeter meter(schedule, costs);
  for (size_t i = 0; i < schedule.order[rank].size(); ++i)
    meter.runAt(schedule.order[rank], i);
  return meter.peakInFlight();
}

/// `1 rank, 2 stages and 4 micro-batches`
static std::string describeSizes(const ScheduleOptions &sizes) {
  auto count = [](int64_t number, llvm::StringRef what) {
    return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s")
        .str();
  };
  std::string microBatches =
      sizes.microBatches == 1
          ? "1 micro-batch"
          : llvm::formatv("{0} micro-batches", sizes.microBatches).str();
  return count(sizes.ranks, "rank") + ", " + count(sizes.stages, "stage") +
         " and " + microBatches;
}

std::string FilePolicy::fittingOptions() const {
  bool isLoop = modelStages() % schedule.ranks == 0;
  return llvm::formatv("--ranks {0} --{1} {2} --micro-batches {3}",
                       schedule.ranks, isLoop ? "loops" : "stages",
                       isLoop ? modelStages() / schedule.ranks : modelStages(),
                       schedule.microBatches);
}

llvm::Expected<Placement>
FilePolicy::placeStages(const ScheduleOptions &options) const {
  if (options.ranks != schedule.ranks || options.stages != modelStages() ||
      options.microBatches != schedule.microBatches)
    return refuse(
        "{0} is a schedule of {1}, but got {2}; use {3}", path,
        describeSizes({schedule.ranks, modelStages(), schedule.microBatches}),
        describeSizes(options), fittingOptions());
  return schedule.rankOfStage;
}

/// `stage 0 hands stage 1 a tensor of 64 bytes`
static std::string describe(const StageEdge &edge) {
  return llvm::formatv("stage {0} hands stage {1} a tensor of {2} bytes{3}",
                       edge.from, edge.to, edge.bytes,
                       edge.hasGradient ? "" : " without a gradient");
}

llvm::Error FilePolicy::checkModel(llvm::ArrayRef<StageEdge> modelEdges) const {
  if (edges.empty() || modelEdges.empty())
    return llvm::Error::success();
  auto sorted = [](llvm::ArrayRef<StageEdge> list) {
    std::vector<StageEdge> result = list.vec();
    llvm::sort(result, [](const StageEdge &a, const StageEdge &b) {
      return std::tie(a.from, a.to, a.bytes, a.hasGradient) <
             std::tie(b.from, b.to, b.bytes, b.hasGradient);
    });
    return result;
  };
  std::vector<StageEdge> own = sorted(edges), other = sorted(modelEdges);
  for (size_t i = 0; i < std::max(own.size(), other.size()); ++i) {
    std::string expected = i < own.size() ? describe(own[i]) : "that is all";
    std::string found = i < other.size() ? describe(other[i]) : "that is all";
    if (expected != found)
      return refuse("{0} is a plan for another model or micro-batch size: in "
                    "it {1}, but here {2}; its order alone can be had by "
                    "pipewright check {0} --write FILE.csv",
                    path, expected, found);
  }
  return llvm::Error::success();
}

std::shared_ptr<const Policy>
pipewright::schedules::makeFilePolicy(llvm::StringRef name,
                                      const Schedule &schedule,
                                      llvm::ArrayRef<StageEdge> edges) {
  return std::make_shared<FilePolicy>(name, schedule, edges);
}

bool pipewright::schedules::isScheduleFile(llvm::StringRef text) {
  return text.ends_with_insensitive(".csv") ||
         text.ends_with_insensitive(".json");
}

llvm::Expected<ScheduleFile>
pipewright::schedules::readScheduleFile(llvm::StringRef path) {
  ScheduleFile file;
  file.isCsv = path.ends_with_insensitive(".csv");
  if (!isScheduleFile(path))
    return refuse("{0}: expects a file that ends in .csv (PyTorch's schedules) "
                  "or .json (a plan)",
                  path);
  llvm::Expected<FileBuffer> buffer = readTextFile(path);
  if (!buffer)
    return refuse("{0}: {1}", path, llvm::toString(buffer.takeError()));
  llvm::StringRef text = (*buffer)->getBuffer();
  if (!file.isCsv) {
    llvm::Expected<PlanFile> plan = parsePlan(text, path);
    if (!plan)
      return plan.takeError();
    file.plan = std::move(*plan);
    return file;
  }
  llvm::Expected<CsvSchedule> csv = parseCsv(text, path);
  if (!csv)
    return csv.takeError();
  file.plan.schedule = std::move(csv->schedule);
  file.plan.lists = std::move(csv->lists);
  file.notes = std::move(csv->notes);
  return file;
}

llvm::Expected<PolicyChoice>
pipewright::schedules::chooseSchedule(llvm::StringRef text) {
  if (!isScheduleFile(text))
    return choosePolicy(text);
  llvm::Expected<ScheduleFile> file = readScheduleFile(text);
  if (!file)
    return file.takeError();
  // Told now, with the name of the file. Whether these are the model's edges is
  // asked when there is a model.
  if (llvm::Error error = checkSchedule(file->plan.schedule, file->plan.edges))
    return refuse("{0}: {1}", text, llvm::toString(std::move(error)));
  PolicyChoice choice;
  choice.owned = makeFilePolicy(text, file->plan.schedule, file->plan.edges);
  choice.policy = choice.owned.get();
  choice.file = std::make_shared<PlanFile>(std::move(file->plan));
  return choice;
}
