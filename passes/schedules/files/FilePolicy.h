//===- FilePolicy.h - A schedule out of a file as a policy ------*- C++ -*-===//
//
// What lets a file stand wherever the name of a policy can: its order is taken
// as it is, and any other number of ranks, stages or micro-batches is refused.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_FILEPOLICY_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_FILEPOLICY_H

#include "passes/schedules/Policy.h"
#include "passes/schedules/files/PlanFile.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright::schedules {

struct ScheduleFile {
  PlanFile plan;
  /// What the file said that was left out, and how it was read.
  std::vector<std::string> notes;
  bool isCsv = false;
};

/// Reads PyTorch's CSV (`.csv`) or a plan (`.json`).
llvm::Expected<ScheduleFile> readScheduleFile(llvm::StringRef path);

/// Whether a text given as a schedule is the path of a file.
bool isScheduleFile(llvm::StringRef text);

/// A policy that has no other order than this one. `name` is how the user
/// calls it. Updates of a synchronous schedule move to the end of their ranks'
/// orders. With `edges`, what a plan's stages hand each other, `build` refuses
/// a model with others.
std::shared_ptr<const Policy>
makeFilePolicy(llvm::StringRef name, const Schedule &schedule,
               llvm::ArrayRef<StageEdge> edges = {});

/// A path that ends in `.csv` or `.json`, or what `choosePolicy` takes.
llvm::Expected<PolicyChoice> chooseSchedule(llvm::StringRef text);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_FILEPOLICY_H
