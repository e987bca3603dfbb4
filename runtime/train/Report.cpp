//===- Report.cpp - Predicted beside measured -----------------------------===//

#include "runtime/train/Report.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/net/Gather.h"
#include "runtime/net/Transport.h"
#include "runtime/train/Checkpoints.h"

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

/// Of the copies that checkpoints are written from; empty: none are made.
static std::vector<int64_t> copiesOf(const Program &program,
                                     const Options &options) {
  std::vector<int64_t> bytes;
  if (!options.checkpoint.empty() && options.steps > 0)
    for (size_t position = 0; position < program.ranks.size(); ++position) {
      const auto copied =
          checkpointBytes(program, static_cast<int64_t>(position));
      for (size_t replica = 0; replica < copied.size(); ++replica)
        if (replica == 0 || copied[replica] > 0)
          bytes.push_back(copied[replica]);
    }
  return bytes;
}

static std::string sumText(const std::vector<int64_t> &bytes) {
  std::string text;
  for (const int64_t each : bytes)
    text += (text.empty() ? "" : " + ") + bytesText(static_cast<double>(each));
  return text;
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
  std::vector<int64_t> arenas;
  for (const RankProgram &rank : program.ranks)
    arenas.push_back(rank.arenaBytes);
  text += "memory " + sumText(arenas);
  if (program.replicas > 1)
    text += " in each replica";
  if (const auto copies = copiesOf(program, options); !copies.empty())
    text += ", and " + sumText(copies) + " to copy checkpoints to";
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

/// What each rank tells: of its memory, in bytes, and of its last step.
enum RowOf {
  Planned,
  Peak,
  Scratch,
  Ahead,
  All,
  Files,
  Pinned,
  Graphs,
  Wait,
  Messages,
  Sent
};
using Row = std::vector<double>;

/// "17.2 MB + 13.1 MB", or the least and the most of many.
static std::string arenasText(const std::vector<Row> &rows) {
  constexpr size_t most = 8;
  std::string text;
  if (rows.size() <= most) {
    for (const Row &row : rows)
      text += (text.empty() ? "" : " + ") + bytesText(row[Peak]);
    return text;
  }
  const auto [least, largest] = std::minmax_element(
      rows.begin(), rows.end(),
      [](const Row &a, const Row &b) { return a[Peak] < b[Peak]; });
  return bytesText((*least)[Peak]) + " to " + bytesText((*largest)[Peak]) +
         " in each of " + std::to_string(rows.size()) + " ranks";
}

/// The memory of all ranks in one line; of a rank that has not what was planned
/// it tells both numbers.
static std::string memoryLine(const std::vector<Row> &rows, bool evaluated) {
  std::string others;
  bool isWhole = true;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto peak = static_cast<int64_t>(rows[r][Peak]);
    const auto planned = static_cast<int64_t>(rows[r][Planned]);
    isWhole &= peak == planned;
    if (peak > planned || (evaluated && peak != planned))
      others += "; " + processName(static_cast<int64_t>(r)) + " has " +
                groupedText(peak) + " bytes, but planned were " +
                groupedText(planned);
  }
  std::string text = "memory     " + arenasText(rows);
  if (!others.empty())
    text += others;
  else if (isWhole)
    text += ", as planned";
  else
    text += ", less than planned: no evaluation ran";
  return text + " (--memory tells what for)\n";
}

/// A line for each rank, and what it has the memory for.
static std::string memoryTable(const Program &program, const Options &options,
                               const Launch &launch,
                               const std::vector<Row> &rows,
                               const Resident &own, bool evaluated) {
  const Platform &platform = platformOf(program);
  const std::vector<int64_t> copies = copiesOf(program, options);
  std::string text;
  bool inProcess = false;
  double arenas = 0, scratch = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row &row = rows[r];
    const Place place = program.mesh().placeOf(static_cast<int64_t>(r));
    const std::string name = processName(static_cast<int64_t>(r));
    const auto planned = static_cast<int64_t>(row[Planned]);
    const auto peak = static_cast<int64_t>(row[Peak]);
    text +=
        format("memory     %s: measured %s bytes, planned %s%s\n", name.c_str(),
               groupedText(peak).c_str(), groupedText(planned).c_str(),
               peak == planned ? " (as planned)"
               : evaluated     ? ""
                               : " (with evaluation, which did not run)");
    arenas += row[Planned];
    scratch += row[Scratch];
    for (const MemoryLine &line : program.ranks[place.position].memory)
      text += format("             %-28s %s\n", line.what,
                     bytesText(static_cast<double>(line.bytes)).c_str());
    if (!copies.empty() && place.replica == 0)
      text += format(
          "             beside the arena: %s to copy checkpoints to\n",
          bytesText(static_cast<double>(copies[place.position])).c_str());
    const std::string beside = platform.besideArena(row[Scratch], row[Ahead],
                                                    row[Pinned], row[Graphs]);
    inProcess |= beside.empty();
    if (!beside.empty())
      text += "             beside the arena: " + beside + "\n";
    else if (launch.processes)
      text += residentText(name + ": ", {row[All], row[Files]}, row[Planned],
                           row[Scratch]) +
              "\n";
  }
  if (!launch.processes && inProcess)
    text += residentText("", own, arenas, scratch) + "\n";
  return text;
}

static void logMemory(const Program &program, size_t process, const Row &row,
                      JsonLines &log) {
  const Place place = program.mesh().placeOf(static_cast<int64_t>(process));
  std::vector<JsonLines::Field> fields = {
      {"rank", static_cast<double>(place.position)},
      {"planned_bytes", row[Planned]},
      {"measured_bytes", row[Peak]},
      {"scratch_bytes", row[Scratch]}};
  if (program.replicas > 1)
    fields.emplace_back("replica", static_cast<double>(place.replica));
  if (!platformOf(program)
           .besideArena(row[Scratch], row[Ahead], row[Pinned], row[Graphs])
           .empty()) {
    fields.emplace_back("ahead_bytes", row[Ahead]);
    fields.emplace_back("pinned_bytes", row[Pinned]);
  }
  log.write(fields);
}

/// How long the rank that waits longest stands still for what groups do.
static std::string collectiveWaitText(const Program &program,
                                      const std::vector<Row> &rows,
                                      JsonLines &log) {
  double measured = -1;
  for (const Row &row : rows)
    measured = std::max(measured, row[Wait] / program.updates);
  const double predicted = program.predictedCollectiveWait / program.updates;
  if (measured < 0 || (measured == 0 && predicted == 0))
    return "";
  log.write({{"measured_collective_wait_seconds", measured},
             {"predicted_collective_wait_seconds", predicted}});
  return "waits      measured " + secondsText(measured) +
         " for collectives (median of the rank that waits longest), "
         "predicted " +
         secondsText(predicted) + "\n";
}

/// What all ranks have sent in the last step, which is what the plan says.
static std::string sentText(const Program &program,
                            const std::vector<Row> &rows, JsonLines &log) {
  double messages = 0, bytes = 0;
  for (const Row &row : rows) {
    if (row[Messages] < 0)
      return "";
    messages += row[Messages];
    bytes += row[Sent];
  }
  const auto plannedMessages = static_cast<double>(program.sent.messages),
             plannedBytes = static_cast<double>(program.sent.bytes);
  const bool isAsPlanned = messages == plannedMessages && bytes == plannedBytes;
  if (isAsPlanned && messages == 0)
    return "";
  log.write({{"measured_sent_messages", messages},
             {"planned_sent_messages", plannedMessages},
             {"measured_sent_bytes", bytes},
             {"planned_sent_bytes", plannedBytes}});
  auto text = [](double count, double size) {
    return std::to_string(static_cast<int64_t>(count)) + " messages, " +
           bytesText(size);
  };
  return "sent       " + text(messages, bytes) + " in " +
         (program.updates == 1 ? "a step"
                               : std::to_string(program.updates) + " steps") +
         " of all ranks" +
         (isAsPlanned ? " (as planned)"
                      : ", planned " + text(plannedMessages, plannedBytes)) +
         "\n";
}

std::string pipewright::runtime::summaryText(Worker &rank,
                                             const Options &options,
                                             const Launch &launch,
                                             const MeasuredTimes &times,
                                             bool evaluated, JsonLines &log) {
  const Resident own = readResident();
  const auto rows = gatherNumbers(
      rank.transport(),
      {static_cast<double>(rank.arenaBytes()),
       static_cast<double>(rank.arenaPeak()),
       static_cast<double>(rank.scratchBytes()),
       static_cast<double>(rank.aheadBytes()), own.all, own.files,
       static_cast<double>(rank.pinnedBytes()),
       static_cast<double>(rank.graphs()),
       times.collectiveWaits.isEmpty() ? -1 : times.collectiveWaits.median(),
       static_cast<double>(times.sent.messages),
       static_cast<double>(times.sent.bytes)});
  const Program &program = rank.wholeProgram();
  std::string text;
  if (!times.steps.isEmpty()) {
    const int64_t together = program.updates;
    const double measured = times.steps.median() / together;
    const double predicted = predictedSeconds(program) / together;
    text += "step time  measured " + secondsText(measured) + " (median)";
    if (predicted > 0)
      text += ", predicted " + secondsText(predicted);
    text += "\n";
    log.write({{"measured_step_seconds", measured},
               {"predicted_step_seconds", predicted}});
    text += collectiveWaitText(program, rows, log);
    text += sentText(program, rows, log);
  }
  text += options.memory
              ? memoryTable(program, options, launch, rows, own, evaluated)
              : memoryLine(rows, evaluated);
  for (size_t r = 0; r < rows.size(); ++r)
    logMemory(program, r, rows[r], log);
  text.pop_back();
  return text;
}
