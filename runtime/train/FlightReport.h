//===- FlightReport.h - What is left of a rank that failed -----*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_FLIGHTREPORT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_FLIGHTREPORT_H

#include "runtime/rank/Worker.h"
#include "runtime/train/Options.h"

#include <string>

namespace pipewright::runtime {

/// From here on whatever ends the process leaves a file that says what the rank
/// did last (`pipewright autopsy`), unless its recorder removes it.
void keepFlight(const Options &options, Worker &rank);

/// Writes what the rank did last, for whoever looks for the reason of a
/// failure. Returns the error's message, with the file's name.
std::string writeFlight(const Options &options, Worker &rank,
                        const std::string &message);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_FLIGHTREPORT_H
