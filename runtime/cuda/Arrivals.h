//===- Arrivals.h - What has come where a stream stands --------*- C++ -*-===//
//
// A stream that waits for an event knows of all that is before it, on its
// stream and on those that were waited for there, so generated code waits once.
// What a stream knows is a vector clock (C. Fidge, 1988; F. Mattern, 1988): how
// many items of each other stream have come.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_ARRIVALS_H
#define PIPEWRIGHT_RUNTIME_CUDA_ARRIVALS_H

#include "runtime/cuda/Stream.h"
#include "runtime/rank/StepDigest.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class Arrivals {
public:
  /// A value that comes from other ranks.
  struct Item {
    StepDigest::Kind kind;
    /// As those of a StepDigest.
    int64_t place, number;
    Buffer buffer;
  };

  void clear();
  /// `event` is behind what the stream has got so far.
  void record(Stream stream, int64_t event);
  /// The item comes on the stream, and `event` is behind it.
  void post(Stream stream, int64_t event, const Item &item);
  /// The stream waits for the event. What it did not know of before, those of
  /// a stream in their order.
  std::vector<Item> wait(Stream stream, int64_t event);

private:
  using Key = std::pair<Stream::Kind, int64_t>;
  using Clock = std::map<Key, size_t>;

  static Key keyOf(Stream stream) { return {stream.kind, stream.peer}; }

  std::map<Key, std::vector<Item>> posted;
  std::map<Key, Clock> clocks;
  std::map<int64_t, Clock> events;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_ARRIVALS_H
