//===- Trace.cpp - What a rank did when -----------------------------------===//

#include "runtime/trace/Trace.h"
#include "runtime/io/AtomicFile.h"

#include <cstdio>

using namespace pipewright::runtime;

void Trace::start(int64_t expected) {
  events.clear();
  events.reserve(expected);
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
  events.push_back({kind, stage, microBatch, now, now});
  running = true;
}

void Trace::wait(const char *verb, int64_t peer, Clock::time_point since) {
  events.push_back({verb, peer, -1, since, Clock::now()});
}

std::string Trace::toJson(int64_t rank) const {
  std::string text;
  char line[256];
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
    char name[64];
    if (isWait)
      std::snprintf(name, sizeof name, "wait %s rank %lld", event.kind,
                    (long long)event.first);
    else
      std::snprintf(name, sizeof name, "%s%lld stage %lld", event.kind,
                    (long long)event.second, (long long)event.first);
    std::snprintf(line, sizeof line,
                  "{\"ph\":\"X\",\"pid\":0,\"tid\":%lld,\"name\":\"%s\","
                  "\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f},\n",
                  (long long)rank, name, isWait ? "wait" : "task",
                  micros(event.begin.time_since_epoch()),
                  micros(event.end - event.begin));
    text += line;
  }
  return text;
}

void pipewright::runtime::writeTrace(const std::string &path,
                                     const std::vector<std::string> &rows) {
  std::string text = "[\n";
  for (const std::string &row : rows)
    text += row;
  // The format allows no comma after the last event.
  if (text.size() > 2)
    text.resize(text.size() - 2);
  text += "\n]\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}
