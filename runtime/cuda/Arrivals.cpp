//===- Arrivals.cpp - What has come where a stream stands -----------------===//

#include "runtime/cuda/Arrivals.h"

using namespace pipewright::runtime;

void Arrivals::clear() {
  posted.clear();
  clocks.clear();
  events.clear();
}

void Arrivals::record(Stream stream, int64_t event) {
  events[event] = clocks[keyOf(stream)];
}

void Arrivals::post(Stream stream, int64_t event, const Item &item) {
  const Key key = keyOf(stream);
  posted[key].push_back(item);
  clocks[key][key] = posted[key].size();
  record(stream, event);
}

std::vector<Arrivals::Item> Arrivals::wait(Stream stream, int64_t event) {
  std::vector<Item> news;
  Clock &known = clocks[keyOf(stream)];
  for (const auto &[from, count] : events[event])
    for (size_t &now = known[from]; now < count; ++now)
      news.push_back(posted[from][now]);
  return news;
}
