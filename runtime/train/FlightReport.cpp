//===- FlightReport.cpp - What is left of a rank that failed --------------===//

#include "runtime/train/FlightReport.h"
#include "runtime/core/Error.h"
#include "runtime/net/Transport.h"

using namespace pipewright::runtime;

static std::string pathOf(const Options &options, Worker &rank,
                          const char *ending) {
  return options.flight + "/flight-rank" +
         std::to_string(rank.transport().rank()) + ending;
}

void pipewright::runtime::keepFlight(const Options &options, Worker &rank) {
  if (!options.flight.empty() && options.steps > 0)
    rank.flight().keepIn(
        pathOf(options, rank, ".ring"),
        {rank.number(), rank.replica(), rank.wholeProgram().planHash()});
}

std::string pipewright::runtime::writeFlight(const Options &options,
                                             Worker &rank,
                                             const std::string &message) {
  const FlightRecorder &flight = rank.flight();
  if (options.flight.empty() || flight.isEmpty())
    return message;
  const std::string path = pathOf(options, rank, ".json");
  try {
    flight.write(path, rank.number());
  } catch (const Error &) {
    // The failure is what counts; its file may be where nothing can be written.
    return message;
  }
  return message + " (what rank " + std::to_string(rank.transport().rank()) +
         " did last: " + path + ")";
}
