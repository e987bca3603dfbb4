//===- Schedules.h - The list of schedules, drawn ---------------*- C++ -*-===//
//
// `pipewright schedules`: everything here is what the policies say of
// themselves, and what the simulator finds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H

#include "passes/schedules/Policy.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>

namespace pipewright::tool {

/// What to draw instead of the policy's own example.
struct ScheduleSizes {
  std::optional<int64_t> ranks, loops, microBatches;
};

/// The options that `pipewright schedules` has besides drawings.
class ListOptionSet {
public:
  explicit ListOptionSet(llvm::cl::SubCommand &command);
  ~ListOptionSet();

  llvm::ArrayRef<std::string> names() const;
  /// Fails on sizes that no schedule has.
  llvm::Expected<ScheduleSizes> sizes() const;
  bool isJson() const;

private:
  struct Storage;
  std::unique_ptr<Storage> storage;
};

/// The policy's own example, with what the user asks for in its place.
schedules::ScheduleOptions sizedOptions(const schedules::PolicyChoice &choice,
                                        const ScheduleSizes &sizes);

/// Prints the schedules that are named (`zb-v`, `interleaved:group=8`), or all,
/// each with its drawing, formulas and simulated figures.
llvm::Error printSchedules(llvm::ArrayRef<std::string> names,
                           const ScheduleSizes &sizes);

/// The same texts as one JSON list, for scripts; draws and simulates nothing.
llvm::Error printSchedulesAsJson(llvm::ArrayRef<std::string> names,
                                 const ScheduleSizes &sizes);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
