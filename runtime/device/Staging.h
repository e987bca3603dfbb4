//===- Staging.h - Where inputs wait for the GPU ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H
#define PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H

#include "runtime/device/Device.h"

#include <algorithm>
#include <deque>

namespace pipewright::runtime {

/// Pinned memory that one step takes piece by piece, in the same order as the
/// step before.
class Staging {
public:
  /// Room for what a step is expected to take: pinning memory while the GPU
  /// works may wait for it.
  void reserve(int64_t bytes) {
    if (bytes > 0)
      add(bytes);
  }
  /// All pieces are free: the GPU is done with them.
  void rewind() {
    chunk = 0;
    used = 0;
  }
  void *take(int64_t bytes) {
    while (chunk < chunks.size() && used + bytes > chunks[chunk].bytes()) {
      ++chunk;
      used = 0;
    }
    if (chunk == chunks.size())
      add(bytes);
    char *piece = chunks[chunk].data() + used;
    used += padded(bytes);
    return piece;
  }
  int64_t bytes() const { return total; }

  /// What a piece of so many bytes takes.
  static int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

private:
  void add(int64_t bytes) {
    chunks.emplace_back(padded(bytes));
    total += padded(bytes);
  }

  std::deque<PinnedMemory> chunks;
  size_t chunk = 0;
  int64_t used = 0;
  int64_t total = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H
