//===- ShadowMemory.h - Who wrote which bytes last --------------*- C++ -*-===//
//
// An interpreter's view of memory: every range knows the value that was last
// written to it. A plan is right when each read finds what it expects.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_SHADOWMEMORY_H
#define PIPEWRIGHT_PASSES_PLANNING_SHADOWMEMORY_H

#include <cstdint>
#include <iterator>
#include <map>

namespace pipewright {

class ShadowMemory {
public:
  /// Stands for bytes that nobody has written.
  static constexpr int64_t kNothing = -1;

  void write(int64_t begin, int64_t bytes, int64_t value) {
    if (bytes == 0)
      return;
    split(begin);
    split(begin + bytes);
    ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(begin + bytes));
    ranges[begin] = {begin + bytes, value};
  }

  /// `value` if all bytes hold it, else the first other value found there.
  int64_t read(int64_t begin, int64_t bytes, int64_t value) const {
    int64_t at = begin, end = begin + bytes;
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin())
      --next;
    for (; at < end && next != ranges.end(); ++next) {
      if (next->second.end <= at)
        continue;
      if (next->first > at)
        return kNothing;
      if (next->second.value != value)
        return next->second.value;
      at = next->second.end;
    }
    return at < end ? kNothing : value;
  }

private:
  struct Range {
    int64_t end;
    int64_t value;
  };

  /// Makes `at` a border between ranges.
  void split(int64_t at) {
    auto next = ranges.lower_bound(at);
    if (next == ranges.begin())
      return;
    auto before = std::prev(next);
    if (before->second.end <= at)
      return;
    ranges[at] = before->second;
    before->second.end = at;
  }

  std::map<int64_t, Range> ranges;
};

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_SHADOWMEMORY_H
