//===- Schedules.h - Checking a schedule as `check` does -------*- C++ -*-===//
//
// What `pipewright check` does with a file after reading it, without the
// printing.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_FUZZ_SCHEDULES_H
#define PIPEWRIGHT_TEST_FUZZ_SCHEDULES_H

#include "passes/schedules/files/PlanFile.h"

namespace pipewright::fuzz {

/// Checks, orders, proves and simulates; and what is proven must still be so
/// after it was written and read again.
void checkPlan(schedules::PlanFile plan);

} // namespace pipewright::fuzz

#endif // PIPEWRIGHT_TEST_FUZZ_SCHEDULES_H
