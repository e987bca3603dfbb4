//===- PreflightReport.h - What ranks and links really do ------*- C++ -*-===//
//
// What preflight makes of its measurements: tables, a verdict, and a file for
// `pipewright plan --machine`. Nothing here measures.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHTREPORT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHTREPORT_H

#include "runtime/core/Mesh.h"
#include "runtime/core/Platform.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// A number that was measured several times.
struct Measurement {
  double median = 0;
  /// How far apart the ends of the middle half are, as a share of the median.
  double spread = 0;
};
/// Of at least one number.
Measurement summarize(std::vector<double> numbers);

struct MeasuredRank {
  std::string host;
  /// Bytes of the host that nobody uses, shared out among its ranks.
  double freeMemory = 0;
  /// One for each probe, in their order.
  std::vector<Measurement> figures;
};

/// The sizes of messages that a link is measured with, in bytes.
constexpr std::array<int64_t, 3> linkSizes = {1 << 20, 16 << 20, 64 << 20};

/// From one process to another. What was not measured is 0.
struct MeasuredLink {
  int64_t from = 0, to = 0;
  /// Between replicas of a rank, not between ranks of a pipeline.
  bool isOfReplicas = false;
  /// Seconds: half of a round trip of 8 bytes.
  double latency = 0;
  /// Bytes per second while nothing else is sent: one way, for each size.
  std::array<double, linkSizes.size()> alone = {};
  /// The same while as much goes the other way.
  double bothWays = 0;
  /// The same while all links are used, of pipelines or of replicas.
  double together = 0;
  /// How much longer a message takes then than alone.
  double contention = 0;
};

struct PreflightResult {
  /// What processes are numbered by.
  Mesh mesh;
  std::vector<Probe> probes;
  /// By process.
  std::vector<MeasuredRank> ranks;
  std::vector<MeasuredLink> links;

  bool isInHost(const MeasuredLink &link) const {
    return ranks[link.from].host == ranks[link.to].host;
  }
};

/// A row for each rank and precision, and one for each link.
std::string tableText(const PreflightResult &result);

/// A line for each figure of a rank, or of a link, that is behind the median of
/// all by more than the tolerance, a share of it. Latencies, and calls of next
/// to no work, fail where they take twice as long.
std::vector<std::string> findFailures(const PreflightResult &result,
                                      double tolerance);

/// Ranks half of whose figures spread by more than a quarter: "0, 2".
std::string unsteadyRanks(const PreflightResult &result);

/// The figures that the file takes from the machine `cpu`, as there is no such
/// link: "network_latency, network_bandwidth".
std::string notMeasured(const PreflightResult &result);

/// The text of the file: medians, and ranks that are off them by more than the
/// tolerance.
std::string machineText(const PreflightResult &result, double tolerance);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHTREPORT_H
