//===- PreflightReport.cpp - What ranks and links really do ---------------===//

#include "runtime/train/PreflightReport.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/io/JsonFile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <set>

using namespace pipewright::runtime;
using Json = nlohmann::ordered_json;

static std::string format(const char *pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

/// Of at least one number.
static double quantile(const std::vector<double> &sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const size_t before = static_cast<size_t>(at);
  const size_t behind = std::min(before + 1, sorted.size() - 1);
  return sorted[before] +
         (at - static_cast<double>(before)) * (sorted[behind] - sorted[before]);
}

Measurement pipewright::runtime::summarize(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const double median = quantile(numbers, 0.5);
  const double range = quantile(numbers, 0.75) - quantile(numbers, 0.25);
  return {median, median > 0 ? range / median : 0};
}

static double medianOf(std::vector<double> numbers) {
  return summarize(std::move(numbers)).median;
}

//===----------------------------------------------------------------------===//
// What figures are called, and how they compare
//===----------------------------------------------------------------------===//

namespace {

/// How people see a figure.
struct Column {
  const char *figure;
  const char *name;
  const char *unit;
  double size;
};

/// A number of a link.
struct LinkFigure {
  const char *name;
  const char *unit;
  double size;
  bool isRate;
  double (*of)(const MeasuredLink &);
  /// Short messages differ from run to run.
  bool isJudged = true;
};

} // namespace

static constexpr Column columns[] = {
    {"matmul_flops", "matmul", "GFLOP/s", 1e9},
    {"convolution_flops", "convolution", "GFLOP/s", 1e9},
    {"attention_flops", "attention", "GFLOP/s", 1e9},
    {"bandwidth", "bandwidth", "GB/s", 1e9},
    {"seconds_per_random", "random", "ns", 1e-9},
    {"seconds_per_call", "call", "ns", 1e-9}};

/// With the longest messages that were measured.
static double longestAlone(const MeasuredLink &link) {
  double rate = 0;
  for (const double each : link.alone)
    rate = each > 0 ? each : rate;
  return rate;
}

static constexpr LinkFigure linkFigures[] = {
    {"latency", "us", 1e-6, false,
     [](const MeasuredLink &link) { return link.latency; }},
    {"1 MiB", "GB/s", 1e9, true,
     [](const MeasuredLink &link) { return link.alone[0]; }, false},
    {"16 MiB", "GB/s", 1e9, true,
     [](const MeasuredLink &link) { return link.alone[1]; }, false},
    {"64 MiB", "GB/s", 1e9, true,
     [](const MeasuredLink &link) { return link.alone[2]; }, false},
    {"one way", "GB/s", 1e9, true, longestAlone},
    {"both ways", "GB/s", 1e9, true,
     [](const MeasuredLink &link) { return link.bothWays; }},
    {"all at once", "GB/s", 1e9, true,
     [](const MeasuredLink &link) { return link.together; }}};

static const Column &columnOf(const Probe &probe) {
  for (const Column &column : columns)
    if (!std::strcmp(column.figure, probe.figure))
      return column;
  fail("--preflight has no column for ", probe.figure);
}

static bool isOf(const Probe &probe, const std::string &precision) {
  return !*probe.precision || probe.precision == precision;
}

/// Those that there are figures in, each once, in the order of the probes.
static std::vector<std::string> precisionsOf(const PreflightResult &result) {
  std::vector<std::string> all;
  for (const Probe &probe : result.probes)
    if (*probe.precision &&
        std::find(all.begin(), all.end(), probe.precision) == all.end())
      all.push_back(probe.precision);
  return all;
}

/// How fast that is, against the median.
static double speedOf(double number, double median, bool isRate) {
  return isRate ? number / median : median / number;
}

/// What takes next to no time differs from run to run.
static bool isShort(const Probe &probe) {
  return !std::strcmp(probe.figure, "seconds_per_call");
}
static double leastSpeed(bool isShort, double tolerance) {
  return isShort ? std::min(0.5, 1 - tolerance) : 1 - tolerance;
}

static std::vector<double> mediansOf(const PreflightResult &result) {
  std::vector<double> medians;
  for (size_t number = 0; number < result.probes.size(); ++number) {
    std::vector<double> all;
    for (const MeasuredRank &rank : result.ranks)
      all.push_back(rank.figures[number].median);
    medians.push_back(medianOf(all));
  }
  return medians;
}

/// Of the links that are like one; 0 where none has the figure.
static double medianOf(const PreflightResult &result, bool inHost,
                       bool isOfReplicas, double (*of)(const MeasuredLink &)) {
  std::vector<double> all;
  for (const MeasuredLink &link : result.links)
    if (result.isInHost(link) == inHost && link.isOfReplicas == isOfReplicas &&
        of(link) > 0)
      all.push_back(of(link));
  return all.empty() ? 0 : medianOf(all);
}

/// Of links in a host, or between two: those of pipelines, where there are any.
static double medianOf(const PreflightResult &result, bool inHost,
                       double (*of)(const MeasuredLink &)) {
  const double ofPipelines = medianOf(result, inHost, false, of);
  return ofPipelines > 0 ? ofPipelines : medianOf(result, inHost, true, of);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

using Cells = std::vector<std::string>;

/// The first `left` columns begin at the left.
static std::string alignColumns(const std::vector<Cells> &rows, size_t left) {
  std::vector<size_t> widths;
  for (const Cells &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string room(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + room : room + row[i]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

static std::string linkText(const MeasuredLink &link) {
  return processNumber(link.from) + " -> " + processNumber(link.to);
}

static const char *placeText(const PreflightResult &result,
                             const MeasuredLink &link) {
  return result.isInHost(link) ? "in a host" : "between hosts";
}

static std::string rankTable(const PreflightResult &result) {
  Cells heading = {"rank", "host", "precision"};
  for (const Column &column : columns)
    heading.push_back(std::string(column.name) + " " + column.unit);
  heading.push_back("free GB");
  std::vector<Cells> rows = {heading};
  const std::vector<std::string> precisions = precisionsOf(result);
  for (size_t process = 0; process < result.ranks.size(); ++process) {
    const MeasuredRank &rank = result.ranks[process];
    for (const std::string &precision : precisions) {
      const bool isFirst = precision == precisions.front();
      Cells row = {processNumber(static_cast<int64_t>(process)),
                   printable(rank.host), precision};
      for (const Column &column : columns) {
        std::string cell;
        for (size_t i = 0; i < result.probes.size(); ++i)
          if (&columnOf(result.probes[i]) == &column &&
              (isFirst ? isOf(result.probes[i], precision)
                       : result.probes[i].precision == precision))
            cell =
                format("%.2f (%.0f %%)", rank.figures[i].median / column.size,
                       100 * rank.figures[i].spread);
        row.push_back(cell);
      }
      row.push_back(isFirst ? format("%.1f", rank.freeMemory / 1e9) : "");
      rows.push_back(row);
    }
  }
  return alignColumns(rows, 3);
}

static std::string linkTable(const PreflightResult &result) {
  Cells heading = {"link", "where"};
  for (const LinkFigure &figure : linkFigures)
    if (figure.of != longestAlone)
      heading.push_back(std::string(figure.name) + " " + figure.unit);
  heading.push_back("contention");
  std::vector<Cells> rows = {heading};
  for (const MeasuredLink &link : result.links) {
    Cells row = {linkText(link), placeText(result, link)};
    for (const LinkFigure &figure : linkFigures)
      if (figure.of != longestAlone)
        row.push_back(figure.of(link) > 0
                          ? format("%.2f", figure.of(link) / figure.size)
                          : "-");
    row.push_back(link.contention > 0 ? format("%.2f", link.contention) : "-");
    rows.push_back(row);
  }
  return alignColumns(rows, 2);
}

std::string pipewright::runtime::tableText(const PreflightResult &result) {
  return rankTable(result) +
         (result.links.empty() ? "" : "\n" + linkTable(result));
}

//===----------------------------------------------------------------------===//
// The verdict
//===----------------------------------------------------------------------===//

static std::string behindText(double number, double median, double speed,
                              const char *unit, double size,
                              const char *ofWhat) {
  return format(": %.2f %s, %.2f times as fast as the median of %s, %.2f %s",
                number / size, unit, speed, ofWhat, median / size, unit);
}

std::vector<std::string>
pipewright::runtime::findFailures(const PreflightResult &result,
                                  double tolerance) {
  std::vector<std::string> failures;
  const std::vector<double> medians = mediansOf(result);
  for (size_t process = 0; process < result.ranks.size(); ++process)
    for (size_t i = 0; i < result.probes.size(); ++i) {
      const Probe &probe = result.probes[i];
      const MeasuredRank &rank = result.ranks[process];
      const double number = rank.figures[i].median;
      const double speed = speedOf(number, medians[i], probe.isRate);
      if (speed >= leastSpeed(isShort(probe), tolerance))
        continue;
      const Column &column = columnOf(probe);
      failures.push_back(processName(static_cast<int64_t>(process)) + " on " +
                         printable(rank.host) + ": " + column.name +
                         (*probe.precision ? " in " : "") + probe.precision +
                         behindText(number, medians[i], speed, column.unit,
                                    column.size, "all ranks"));
    }
  for (const LinkFigure &figure : linkFigures)
    for (const MeasuredLink &link : result.links) {
      const double number = figure.of(link);
      const bool inHost = result.isInHost(link);
      if (number == 0 || !figure.isJudged)
        continue;
      const double median =
          medianOf(result, inHost, link.isOfReplicas, figure.of);
      const double speed = speedOf(number, median, figure.isRate);
      if (speed < leastSpeed(!figure.isRate, tolerance))
        failures.push_back(
            "link " + linkText(link) + " " + placeText(result, link) + ": " +
            figure.name +
            behindText(number, median, speed, figure.unit, figure.size,
                       (std::string("links ") +
                        (link.isOfReplicas ? "of replicas " : "") +
                        placeText(result, link))
                           .c_str()));
    }
  return failures;
}

std::string pipewright::runtime::unsteadyRanks(const PreflightResult &result) {
  std::string numbers;
  for (size_t process = 0; process < result.ranks.size(); ++process) {
    std::vector<double> spreads;
    for (const Measurement &figure : result.ranks[process].figures)
      spreads.push_back(figure.spread);
    if (medianOf(spreads) > 0.25)
      numbers += (numbers.empty() ? "" : ", ") +
                 processNumber(static_cast<int64_t>(process));
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

namespace {

/// What the machine `cpu` has (passes/planning/MachineModel.h).
struct AssumedLink {
  const char *latencyName, *bandwidthName;
  bool inHost;
  double latency, bandwidth;
};

} // namespace

static constexpr AssumedLink assumedLinks[] = {
    {"link_latency", "link_bandwidth", true, 5e-6, 8e9},
    {"network_latency", "network_bandwidth", false, 50e-6, 1.25e9}};

static double latencyOf(const MeasuredLink &link) { return link.latency; }
static double togetherOf(const MeasuredLink &link) { return link.together; }

std::string pipewright::runtime::notMeasured(const PreflightResult &result) {
  std::string names;
  for (const AssumedLink &link : assumedLinks)
    if (medianOf(result, link.inHost, togetherOf) == 0)
      names += std::string(names.empty() ? "" : ", ") + link.latencyName +
               ", " + link.bandwidthName;
  return names;
}

/// The most ranks of a host; of one host all that there may be.
static int64_t ranksOfHost(const PreflightResult &result) {
  std::map<std::string, int64_t> hosts;
  int64_t most = 0;
  for (const MeasuredRank &rank : result.ranks)
    most = std::max(most, ++hosts[rank.host]);
  return hosts.size() > 1 ? most : int64_t{1} << 20;
}

/// Those of one rank that are not the median's, in each precision; files have
/// at least one in each, or none at all.
static Json figuresOf(const PreflightResult &result, const MeasuredRank &rank,
                      const std::vector<double> &medians, double tolerance) {
  Json all = Json::object();
  bool differs = false;
  for (const std::string &precision : precisionsOf(result)) {
    Json &own = all[precision] = Json::object();
    for (size_t i = 0; i < result.probes.size(); ++i) {
      const Probe &probe = result.probes[i];
      const double speed =
          speedOf(rank.figures[i].median, medians[i], probe.isRate);
      const double least = leastSpeed(isShort(probe), tolerance);
      if (isOf(probe, precision) && (speed < least || speed > 2 - least))
        own[probe.figure] = rank.figures[i].median;
    }
    differs |= !own.empty();
    for (size_t i = 0; i < result.probes.size() && own.empty(); ++i)
      if (isOf(result.probes[i], precision))
        own[result.probes[i].figure] = rank.figures[i].median;
  }
  return differs ? all : Json();
}

std::string pipewright::runtime::machineText(const PreflightResult &result,
                                             double tolerance) {
  const std::vector<double> medians = mediansOf(result);
  Json links = Json::object();
  for (const AssumedLink &link : assumedLinks) {
    const double latency = medianOf(result, link.inHost, latencyOf);
    const double bandwidth = medianOf(result, link.inHost, togetherOf);
    links[link.latencyName] = bandwidth > 0 ? latency : link.latency;
    links[link.bandwidthName] = bandwidth > 0 ? bandwidth : link.bandwidth;
    if (link.inHost)
      links["host_ranks"] = ranksOfHost(result);
  }
  Json figures = Json::object();
  for (const std::string &precision : precisionsOf(result)) {
    Json &own = figures[precision] = Json::object();
    for (const Column &column : columns)
      for (size_t i = 0; i < result.probes.size(); ++i)
        if (&columnOf(result.probes[i]) == &column &&
            isOf(result.probes[i], precision))
          own[column.figure] = medians[i];
    own.update(links);
  }
  Json others = Json::array();
  for (size_t process = 0; process < result.ranks.size(); ++process)
    if (Json own = figuresOf(result, result.ranks[process], medians, tolerance);
        !own.is_null())
      others.push_back(
          {{"first", process}, {"last", process}, {"figures", own}});
  Json file = {{"processor", "the machine that --preflight measured"},
               {"figures", figures}};
  if (!others.empty())
    file["ranks"] = others;
  return file.dump(2) + "\n";
}
