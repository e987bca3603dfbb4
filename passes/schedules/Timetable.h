//===- Timetable.h - A schedule as a drawn grid -----------------*- C++ -*-===//
//
// One line per rank, one column per slot, after a line that says how to read
// it:
//
//   2 ranks, 2 micro-batches, 6 slots; cells: F forward, B backward, then the
//   micro-batch
//   rank 0 | F0 F1    B0    B1
//   rank 1 |    F0 B0 F1 B1
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_TIMETABLE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_TIMETABLE_H

#include "passes/schedules/Simulator.h"

#include <string>

namespace pipewright::schedules {

/// Draws `schedule` at the times of `simulation`, a slot being its shortest
/// task; without one, at the times of unit tasks (a B of two units where other
/// backwards are split) and stages in a chain. Cells
/// name the micro-batch (`F2`), and the stage first where a rank has several
/// (`F4.2`). A task of several slots is continued by dashes; an overlapped pair
/// is one cell (`F1.2&B6.0`). Updates are not drawn. An order that cannot run
/// is drawn without times, and says so.
std::string printTimetable(const Schedule &schedule,
                           const Simulation *simulation = nullptr);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_TIMETABLE_H
