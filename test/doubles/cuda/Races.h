//===- Races.h - Accesses of streams that nothing orders -------*- C++ -*-===//
//
// Vector clocks: entry i of an operation's clock says how many operations of
// stream i happened before it, by the order of a stream, by events, or because
// the host waited. Two accesses of the same bytes, one of them a write, must be
// ordered so. The host counts as one thread: whatever it waited for happened
// before whatever it enqueues later. So nothing is reported that is ordered,
// and what is ordered only by luck between threads of the host is missed.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDA_RACES_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDA_RACES_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::doubles {

class VectorClock {
public:
  uint64_t of(unsigned stream) const {
    return stream < ticks.size() ? ticks[stream] : 0;
  }
  void set(unsigned stream, uint64_t tick) {
    if (stream >= ticks.size())
      ticks.resize(stream + 1);
    ticks[stream] = tick;
  }
  void join(const VectorClock &other) {
    if (other.ticks.size() > ticks.size())
      ticks.resize(other.ticks.size());
    for (size_t i = 0; i < other.ticks.size(); ++i)
      ticks[i] = std::max(ticks[i], other.ticks[i]);
    for (const auto &[key, tick] : other.elsewhere)
      elsewhere[key] = std::max(elsewhere[key], tick);
  }

  /// An entry as all processes understand it.
  struct Tick {
    uint32_t process = 0, stream = 0;
    uint64_t tick = 0;
  };
  /// `self` is this process.
  std::vector<Tick> all(uint32_t self) const;
  void join(const Tick &other, uint32_t self);

private:
  std::vector<uint64_t> ticks;
  /// Of other processes, by process and stream.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> elsewhere;
};

/// Who touched each part of an allocation last.
class Shadow {
public:
  explicit Shadow(uint64_t bytes);

  /// Notes an access of an operation. The name of an operation that it is not
  /// ordered with, or an empty string.
  struct Toucher {
    uint64_t tick = 0;
    unsigned stream = 0;
    /// Index of nameOf.
    uint32_t name = 0;
  };
  std::string access(uint64_t offset, uint64_t bytes, bool write,
                     const Toucher &by, const VectorClock &clock);

private:
  /// Bytes that share one entry; buffers of the arena are aligned to more.
  static constexpr uint64_t granule = 16;
  struct Cell {
    Toucher writer;
    /// The last reader of some streams; more than these are forgotten.
    Toucher readers[3];
  };
  std::mutex mutex;
  std::vector<std::unique_ptr<Cell[]>> pages;
  static constexpr uint64_t cellsPerPage = 1024;

  Cell &cell(uint64_t index);
};

/// Numbers names of operations, so that cells are small.
uint32_t internName(const std::string &name);
std::string nameOf(uint32_t index);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDA_RACES_H
