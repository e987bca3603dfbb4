//===- RangeMap.h - Something known about each byte -------------*- C++ -*-===//
//
// Values by range of bytes. Ranges are split where a visit begins or ends, so
// that each piece has one value.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_RANGEMAP_H
#define PIPEWRIGHT_PASSES_PLANNING_RANGEMAP_H

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace pipewright {

/// A `Value` for each byte from 0 on; `Value()` to begin with.
template <class Value>
class RangeMap {
public:
  /// Calls `visitor(begin, end, value)` for the pieces of a range, in order. It
  /// may change the values.
  template <class Visitor>
  void visit(int64_t begin, int64_t bytes, Visitor visitor) {
    if (bytes <= 0)
      return;
    auto last = split(begin + bytes);
    for (auto piece = split(begin); piece != last;) {
      auto next = std::next(piece);
      visitor(piece->first, next->first, piece->second);
      piece = next;
    }
  }

  /// Gives a range one value, as one piece.
  void set(int64_t begin, int64_t bytes, Value value) {
    if (bytes <= 0)
      return;
    auto last = split(begin + bytes), first = split(begin);
    first->second = std::move(value);
    pieces.erase(std::next(first), last);
  }

private:
  using Pieces = std::map<int64_t, Value>;

  /// Makes `at` the start of a piece.
  typename Pieces::iterator split(int64_t at) {
    auto next = pieces.upper_bound(at);
    auto piece = std::prev(next);
    if (piece->first == at)
      return piece;
    return pieces.emplace_hint(next, at, piece->second);
  }

  /// The key is where a piece begins; it ends where the next one begins.
  Pieces pieces = {{std::numeric_limits<int64_t>::min(), Value()}};
};

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_RANGEMAP_H
