//===- StepDigest.cpp - What a rank computed in a step, as hashes ---------===//

#include "runtime/rank/StepDigest.h"
#include "runtime/core/Hash.h"
#include "runtime/trace/Trace.h"

#include <algorithm>

using namespace pipewright::runtime;

void StepDigest::beginTask(const char *kind, int64_t stage,
                           int64_t microBatch) {
  task = taskName(kind, stage, microBatch);
}

void StepDigest::add(Kind kind, int64_t place, const void *data,
                     int64_t bytes) {
  add(kind, place, next(kind, place), data, bytes);
}

void StepDigest::add(Kind kind, int64_t place, int64_t number, const void *data,
                     int64_t bytes) {
  Hash hash;
  hash.addBytes(data, bytes);
  all.push_back({kind, place, number, task, hash.value()});
}

Buffer StepDigest::takePosted(Kind kind, int64_t place) {
  std::deque<Buffer> &waiting = posted[{kind, place}];
  if (waiting.empty())
    return {};
  const Buffer oldest = waiting.front();
  waiting.pop_front();
  return oldest;
}

std::optional<StepDigest::Entry>
pipewright::runtime::firstDifference(const StepDigest &first,
                                     const StepDigest &second) {
  const auto &a = first.entries(), &b = second.entries();
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    if (i >= a.size() || i >= b.size() || a[i].hash != b[i].hash)
      return i < b.size() ? b[i] : a[i];
  return std::nullopt;
}

std::map<int64_t, int64_t>
pipewright::runtime::differingSends(const StepDigest &first,
                                    const StepDigest &second) {
  const auto &a = first.entries(), &b = second.entries();
  std::map<int64_t, int64_t> sends;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i].kind == StepDigest::Kind::Send && a[i].hash != b[i].hash)
      sends.try_emplace(a[i].place, a[i].number);
  return sends;
}
