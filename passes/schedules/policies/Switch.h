//===- Switch.h - Parameters that are on or off -----------------*- C++ -*-===//
//
// `gpipe:descending` is the same as `gpipe:descending=1`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_SWITCH_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_SWITCH_H

#include "passes/schedules/Policy.h"
#include "passes/schedules/Refusal.h"

namespace pipewright::schedules {

inline bool isOn(const ScheduleOptions &options, llvm::StringRef name) {
  return options.parameter(name, 0) != 0;
}

/// Fails if the user gave something else than 0 or 1.
inline llvm::Error checkSwitch(const Policy &policy,
                               const ScheduleOptions &options,
                               llvm::StringRef name) {
  int64_t value = options.parameter(name, 0);
  if (value == 0 || value == 1)
    return llvm::Error::success();
  return refuse("parameter '{0}' of schedule '{1}' expects 0 or 1, but got {2}",
                name, policy.name(), value);
}

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_SWITCH_H
