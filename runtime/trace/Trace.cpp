//===- Trace.cpp - What a rank did when -----------------------------------===//

#include "runtime/trace/Trace.h"
#include "runtime/io/AtomicFile.h"

#include <algorithm>
#include <cstdio>

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
  events.push_back({kind, stage, microBatch, currentStep, now, now});
  running = true;
}

void Trace::wait(const char *verb, int64_t peer, Clock::time_point since) {
  if (running)
    events[current].end = std::max(events[current].begin, since);
  running = false;
  events.push_back({verb, peer, -1, currentStep, since, Clock::now()});
}

/// `F0.3`, as in the timetable; the first update of a step has no number.
static void nameTask(char *name, size_t size, const char *kind, int64_t stage,
                     int64_t microBatch) {
  if (kind[0] == 'U' && microBatch == 0)
    std::snprintf(name, size, "U%lld", (long long)stage);
  else
    std::snprintf(name, size, "%s%lld.%lld", kind, (long long)stage,
                  (long long)microBatch);
}

std::string Trace::toJson(int64_t rank) const {
  std::string text;
  char line[320];
  std::snprintf(line, sizeof line,
                "{\"ph\":\"M\",\"pid\":0,\"tid\":%lld,\"name\":\"thread_name\","
                "\"args\":{\"name\":\"rank %lld\"}},\n",
                (long long)rank, (long long)rank);
  text += line;
  auto micros = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  for (const Event &event : events) {
    const bool isWait = event.second < 0;
    char name[64], arguments[128] = "";
    if (isWait) {
      std::snprintf(name, sizeof name, "wait %s rank %lld", event.kind,
                    (long long)event.first);
    } else {
      nameTask(name, sizeof name, event.kind, event.first, event.second);
      std::snprintf(arguments, sizeof arguments,
                    ",\"args\":{\"kind\":\"%s\",\"stage\":%lld,"
                    "\"micro_batch\":%lld,\"step\":%lld}",
                    event.kind, (long long)event.first, (long long)event.second,
                    (long long)event.step);
    }
    std::snprintf(line, sizeof line,
                  "{\"ph\":\"X\",\"pid\":0,\"tid\":%lld,\"name\":\"%s\","
                  "\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f%s},\n",
                  (long long)rank, name, isWait ? "wait" : "task",
                  micros(event.begin.time_since_epoch()),
                  micros(event.end - event.begin), arguments);
    text += line;
  }
  return text;
}

void pipewright::runtime::writeTrace(const std::string &path,
                                     const std::vector<std::string> &rows) {
  std::string text = "[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
                     "\"args\":{\"name\":\"measured\"}},\n";
  for (const std::string &row : rows)
    text += row;
  // The format allows no comma after the last event.
  text.resize(text.size() - 2);
  text += "\n]\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}
