//===- Report.cpp - Predicted beside measured -----------------------------===//

#include "runtime/train/Report.h"
#include "runtime/core/Text.h"
#include "runtime/net/Gather.h"
#include "runtime/net/Transport.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace pipewright::runtime;

static std::string format(const char *pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

double pipewright::runtime::predictedSeconds(const Program &program) {
  double seconds = 0;
  for (const RankProgram &rank : program.ranks)
    seconds = std::max(seconds, rank.predictedStepSeconds);
  return seconds;
}

std::string pipewright::runtime::headerText(const Program &program,
                                            const Options &options,
                                            const Launch &launch) {
  const int64_t together = program.updates;
  const int64_t perStep = program.batchMicroBatches() / together;
  std::string text =
      format("%s: %s (%s), %s; a step is %lld micro-batch%s of %lld; %s, lr %g",
             program.name, countedRanks(program).c_str(),
             launch.processes ? "processes" : "threads",
             launch.platform.c_str(), (long long)perStep,
             perStep == 1 ? "" : "es", (long long)program.microBatchSize,
             program.optimizer.name, options.learningRate);
  if (together > 1) {
    text +=
        format("\nthe schedule runs %lld steps together, some on weights of "
               "earlier steps",
               (long long)together);
    if (options.steps > options.stepsGiven)
      text += format("; --steps %lld is rounded up to %lld",
                     (long long)options.stepsGiven, (long long)options.steps);
  }
  text += "\npredicted: ";
  if (const double seconds = predictedSeconds(program))
    text += secondsText(seconds / together) + " per step; ";
  text += "memory";
  const char *separator = " ";
  for (const RankProgram &rank : program.ranks) {
    text += separator + bytesText(static_cast<double>(rank.arenaBytes));
    separator = " + ";
  }
  if (program.replicas > 1)
    text += format(" in each replica\nerrors call a process by its number: "
                   "%lld x its rank + its replica",
                   (long long)program.replicas);
  return text;
}

namespace {
/// Resident memory of a process in bytes.
struct Resident {
  double all = 0, files = 0;
};
} // namespace

static Resident readResident() {
  Resident resident;
  std::FILE *file = std::fopen("/proc/self/status", "r");
  if (!file)
    return resident;
  char line[256];
  while (std::fgets(line, sizeof line, file)) {
    double kilobytes = 0;
    if (std::sscanf(line, "VmRSS: %lf", &kilobytes) == 1)
      resident.all = kilobytes * 1024;
    else if (std::sscanf(line, "RssFile: %lf", &kilobytes) == 1 ||
             std::sscanf(line, "RssShmem: %lf", &kilobytes) == 1)
      resident.files += kilobytes * 1024;
  }
  std::fclose(file);
  return resident;
}

static std::string residentText(const std::string &who,
                                const Resident &resident, double arenas,
                                double scratch) {
  const double rest = resident.all - resident.files - arenas - scratch;
  return "resident   " + who + bytesText(resident.all) + " = arenas " +
         bytesText(arenas) + " + library scratch " + bytesText(scratch) +
         " + program, libraries and data files " + bytesText(resident.files) +
         " + heap, stacks and generated code " + bytesText(std::max(0.0, rest));
}

std::string pipewright::runtime::summaryText(Rank &rank, const Launch &launch,
                                             std::vector<double> stepSeconds,
                                             bool evaluated, JsonLines &log) {
  const Resident own = readResident();
  const auto rows = gatherNumbers(
      rank.transport(), {static_cast<double>(rank.arenaBytes()),
                         static_cast<double>(rank.arenaPeak()),
                         static_cast<double>(rank.scratchBytes()), own.all,
                         own.files, static_cast<double>(rank.pinnedBytes()),
                         static_cast<double>(rank.graphs())});
  const Program &program = rank.wholeProgram();
  const Platform &platform = platformOf(program);
  bool inProcess = false;
  std::string text;
  // The first step also warms caches up.
  if (stepSeconds.size() > 1)
    stepSeconds.erase(stepSeconds.begin());
  if (!stepSeconds.empty()) {
    std::nth_element(stepSeconds.begin(),
                     stepSeconds.begin() + stepSeconds.size() / 2,
                     stepSeconds.end());
    const int64_t together = program.updates;
    const double measured = stepSeconds[stepSeconds.size() / 2] / together;
    const double predicted = predictedSeconds(program) / together;
    text += "step time  measured " + secondsText(measured) + " (median)";
    if (predicted > 0)
      text += ", predicted " + secondsText(predicted);
    text += "\n";
    log.write({{"measured_step_seconds", measured},
               {"predicted_step_seconds", predicted}});
  }
  double arenas = 0, scratch = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Place place = program.mesh().placeOf(static_cast<int64_t>(r));
    const std::string name = processText(program, static_cast<int64_t>(r));
    const int64_t planned = rows[r][0], peak = rows[r][1];
    text +=
        format("memory     %s: measured %s bytes, planned %s%s\n", name.c_str(),
               groupedText(peak).c_str(), groupedText(planned).c_str(),
               peak == planned ? " (as planned)"
               : evaluated     ? ""
                               : " (with evaluation, which did not run)");
    std::vector<JsonLines::Field> fields = {
        {"rank", static_cast<double>(place.position)},
        {"planned_bytes", rows[r][0]},
        {"measured_bytes", rows[r][1]},
        {"scratch_bytes", rows[r][2]}};
    if (program.replicas > 1)
      fields.emplace_back("replica", static_cast<double>(place.replica));
    const std::string beside =
        platform.besideArena(rows[r][2], rows[r][5], rows[r][6]);
    inProcess |= beside.empty();
    if (!beside.empty())
      fields.emplace_back("pinned_bytes", rows[r][5]);
    log.write(fields);
    arenas += rows[r][0];
    scratch += rows[r][2];
    for (const MemoryLine &line : program.ranks[place.position].memory)
      text += format("             %-28s %s\n", line.what,
                     bytesText(static_cast<double>(line.bytes)).c_str());
    if (!beside.empty())
      text += "             beside the arena: " + beside + "\n";
    else if (launch.processes)
      text += residentText(name + ": ", {rows[r][3], rows[r][4]}, rows[r][0],
                           rows[r][2]) +
              "\n";
  }
  if (!launch.processes && inProcess)
    text += residentText("", own, arenas, scratch) + "\n";
  text.pop_back();
  return text;
}
