//===- Refusal.h - Why a schedule is refused --------------------*- C++ -*-===//
//
// Shared by everything that refuses schedules, above all because of cycles.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_REFUSAL_H
#define PIPEWRIGHT_PASSES_SCHEDULES_REFUSAL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::schedules {

template <typename... Args>
llvm::Error refuse(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// The ranks of a cycle of "waits for", which the lowest waiting rank leads
/// to, in order and starting at the lowest of them. `waitsFor` is -1 for ranks
/// that are done; a waiting rank never waits for one of those.
std::vector<int32_t> findWaitCycle(llvm::ArrayRef<int32_t> waitsFor);

/// Joins what is told of each part of a cycle; the middle of a long one is left
/// out.
std::string joinCycle(size_t parts, const char *separator,
                      llvm::function_ref<std::string(size_t)> tell);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_REFUSAL_H
