//===- Trace.cpp - What a rank did when -----------------------------------===//

#include "runtime/trace/Trace.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/DataFile.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <sys/stat.h>

using namespace pipewright::runtime;

void Trace::beginStep(int64_t step, int64_t expected) {
  if (events.empty())
    events.reserve(expected);
  currentStep = step;
  running = false;
}

void Trace::stop() {
  if (running)
    events[current].end = Clock::now();
  running = false;
}

void Trace::task(const char *kind, int64_t stage, int64_t microBatch) {
  stop();
  const auto now = Clock::now();
  current = events.size();
  add({Category::Task, kind, stage, microBatch}, now, now);
  running = true;
}

void Trace::endTask(Clock::time_point since) {
  if (running)
    events[current].end = std::max(events[current].begin, since);
  running = false;
}

void Trace::wait(const char *verb, int64_t peer, Clock::time_point since) {
  endTask(since);
  add({Category::Wait, verb, peer}, since, Clock::now());
}

void Trace::waitCollective(const char *kind, int64_t group,
                           Clock::time_point begun, Clock::time_point since) {
  endTask(since);
  const auto now = Clock::now();
  add({Category::CollectiveWait, kind, group}, since, now);
  add({Category::Collective, kind, group}, begun, now);
}

std::string pipewright::runtime::taskName(const char *kind, int64_t stage,
                                          int64_t microBatch) {
  std::string name = kind + std::to_string(stage);
  if (kind[0] != 'U' || microBatch != 0)
    name += "." + std::to_string(microBatch);
  return name;
}

static std::string nameRow(int64_t row, const std::string &name) {
  return "{\"ph\":\"M\",\"pid\":0,\"tid\":" + std::to_string(row) +
         ",\"name\":\"thread_name\",\"args\":{\"name\":\"" + name + "\"}},\n";
}

/// A row for each stream of a rank's GPU, apart from those of all ranks.
static int64_t transferRow(int64_t rank, const char *verb, int64_t peer) {
  return 1000000 * (rank + 1) + 2 * peer + (verb[0] == 'r');
}

/// And one for its collectives, behind those.
static int64_t collectiveRow(int64_t rank) { return 1000000 * (rank + 2) - 1; }

/// And two for copies to the host and back, in front of that.
static int64_t copyRow(int64_t rank, const char *direction) {
  return collectiveRow(rank) - (direction[0] == 't' ? 2 : 1);
}

std::string Trace::toJson(int64_t rank) const {
  const std::string self = "rank " + std::to_string(rank);
  std::string text = nameRow(rank, self);
  std::set<int64_t> named;
  auto micros = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  for (const Event &event : events) {
    const std::string peer = "rank " + std::to_string(event.first);
    const std::string group = "group " + std::to_string(event.first);
    const char *category = "task";
    std::string name, arguments;
    int64_t row = rank;
    if (event.category == Category::Task) {
      name = taskName(event.kind, event.first, event.second);
      arguments = std::string(",\"args\":{\"kind\":\"") + event.kind +
                  "\",\"stage\":" + std::to_string(event.first) +
                  ",\"micro_batch\":" + std::to_string(event.second) +
                  ",\"step\":" + std::to_string(event.step) + "}";
    } else if (event.category == Category::Wait) {
      category = "wait";
      name = std::string("wait ") + event.kind + " " + peer;
    } else if (event.category == Category::CollectiveWait) {
      category = "wait";
      name = std::string("wait ") + event.kind + " " + group;
    } else if (event.category == Category::Collective) {
      category = "collective";
      name = std::string(event.kind) + " " + group;
      row = collectiveRow(rank);
      if (named.insert(row).second)
        text += nameRow(row, self + " collectives");
    } else if (event.category == Category::Copy) {
      category = "copy";
      name = std::string("copy ") + event.kind + " host";
      row = copyRow(rank, event.kind);
      if (named.insert(row).second)
        text += nameRow(row, self + " " + event.kind + " host");
    } else {
      category = "transfer";
      name = std::string(event.kind) + " " + peer;
      row = transferRow(rank, event.kind, event.first);
      if (named.insert(row).second)
        text += nameRow(row, self + (event.kind[0] == 'r' ? " from " : " to ") +
                                 peer);
    }
    char times[96];
    std::snprintf(times, sizeof times, "\"ts\":%.3f,\"dur\":%.3f",
                  micros(event.begin.time_since_epoch()),
                  micros(event.end - event.begin));
    text += "{\"ph\":\"X\",\"pid\":0,\"tid\":" + std::to_string(row) +
            ",\"name\":\"" + name + "\",\"cat\":\"" + category + "\"," + times +
            arguments + "},\n";
  }
  return text;
}

/// Says of which program a trace is; nothing where that has no plan.
static std::string planEvent(const std::string &planJson) {
  if (planJson.empty())
    return "";
  std::string text = R"({"ph":"M","pid":0,"name":"plan","args":)";
  // One event per line; a plan has no line breaks within its texts.
  for (const char c : planJson)
    if (c != '\n')
      text += c;
  return text + "},\n";
}

/// By which a file is known as one of ours.
static constexpr char beginning[] =
    "[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
    "\"measured\"}},\n";

static void write(AtomicFile &file, const std::vector<std::string> &rows) {
  std::string text = beginning;
  for (const std::string &row : rows)
    text += row;
  // The format allows no comma after the last event.
  text.resize(text.size() - 2);
  text += "\n]\n";
  file.write(text.data(), text.size());
  file.commit();
}

void pipewright::runtime::writeTrace(const std::string &path,
                                     const std::vector<std::string> &rows,
                                     const std::string &planJson) {
  AtomicFile file(path);
  std::vector<std::string> all = {planEvent(planJson)};
  all.insert(all.end(), rows.begin(), rows.end());
  write(file, all);
}

void pipewright::runtime::replaceTrace(const std::string &path,
                                       const std::vector<std::string> &rows) {
  AtomicFile target(path, AtomicFile::Target::RegularFile);
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) {
    DataFile old(path);
    std::string found(std::min<size_t>(old.bytes(), sizeof beginning - 1), 0);
    old.read(0, found.size(), found.data());
    if (found != beginning)
      fail("cannot write '", path, "': it is there, and not a trace");
  }
  write(target, rows);
}
