//===- Races.cpp - Accesses of streams that nothing orders ----------------===//

#include "test/doubles/cuda/Races.h"

using namespace pipewright::doubles;

std::vector<VectorClock::Tick> VectorClock::all(uint32_t self) const {
  std::vector<Tick> found;
  for (size_t i = 0; i < ticks.size(); ++i)
    if (ticks[i])
      found.push_back({self, static_cast<uint32_t>(i), ticks[i]});
  for (const auto &[key, tick] : elsewhere)
    found.push_back({key.first, key.second, tick});
  return found;
}

void VectorClock::join(const Tick &other, uint32_t self) {
  if (other.process == self) {
    set(other.stream, std::max(of(other.stream), other.tick));
    return;
  }
  uint64_t &known = elsewhere[{other.process, other.stream}];
  known = std::max(known, other.tick);
}

namespace {
struct Names {
  std::mutex mutex;
  std::map<std::string, uint32_t> indices;
  std::vector<std::string> texts;
};
} // namespace

static Names &names() {
  static Names *all = new Names;
  return *all;
}

uint32_t pipewright::doubles::internName(const std::string &name) {
  Names &all = names();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto [found, inserted] = all.indices.try_emplace(name, all.texts.size());
  if (inserted)
    all.texts.push_back(name);
  return found->second;
}

std::string pipewright::doubles::nameOf(uint32_t index) {
  Names &all = names();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.texts[index];
}

Shadow::Shadow(uint64_t bytes)
    : pages((bytes + granule * cellsPerPage - 1) / (granule * cellsPerPage)) {}

Shadow::Cell &Shadow::cell(uint64_t index) {
  std::unique_ptr<Cell[]> &page = pages[index / cellsPerPage];
  if (!page)
    page = std::make_unique<Cell[]>(cellsPerPage);
  return page[index % cellsPerPage];
}

static bool isOrdered(const Shadow::Toucher &earlier,
                      const VectorClock &clock) {
  return earlier.tick <= clock.of(earlier.stream);
}

static std::string describe(const Shadow::Toucher &other, bool write,
                            uint64_t offset) {
  return std::string(write ? "a write" : "a read") + " by '" +
         nameOf(other.name) + "' on stream " + std::to_string(other.stream) +
         ", at byte " + std::to_string(offset) + " of the allocation";
}

std::string Shadow::access(uint64_t offset, uint64_t bytes, bool write,
                           const Toucher &by, const VectorClock &clock) {
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t last = (offset + bytes - 1) / granule;
  for (uint64_t index = offset / granule; index <= last; ++index) {
    Cell &at = cell(index);
    if (!isOrdered(at.writer, clock))
      return describe(at.writer, true, index * granule);
    if (write) {
      for (Toucher &reader : at.readers) {
        if (!isOrdered(reader, clock))
          return describe(reader, false, index * granule);
        reader = {};
      }
      at.writer = by;
      continue;
    }
    // Take the entry of this stream, or one that is ordered before us.
    Toucher *slot = &at.readers[0];
    for (Toucher &reader : at.readers)
      if (reader.stream == by.stream || isOrdered(reader, clock)) {
        slot = &reader;
        break;
      }
    *slot = by;
  }
  return {};
}
