//===- CollectiveParts.h - Which part of a range is whose -------*- C++ -*-===//
//
// The members of a group cut a range of numbers into one part for each. The
// compiler plans memory for a collective with the same arithmetic with which
// the runtime runs it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H
#define PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright::runtime {

/// Where each member's part of a range begins, and at last where the last one's
/// ends. Parts are as long as can be, the last ones shorter.
inline std::vector<int64_t> evenBounds(int64_t count, int64_t members) {
  const int64_t part = (count + members - 1) / members;
  std::vector<int64_t> bounds;
  for (int64_t m = 0; m <= members; ++m)
    bounds.push_back(std::min(m * part, count));
  return bounds;
}

/// How many numbers a member gets from the others to add them to its part.
inline int64_t numbersFromOthers(const std::vector<int64_t> &bounds,
                                 int64_t member) {
  const auto members = static_cast<int64_t>(bounds.size()) - 1;
  return (members - 1) * (bounds[member + 1] - bounds[member]);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H
