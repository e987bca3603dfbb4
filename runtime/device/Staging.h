//===- Staging.h - Where inputs wait for the GPU ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H
#define PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H

#include "runtime/core/Rank.h"
#include "runtime/device/Device.h"

#include <deque>
#include <vector>

namespace pipewright::runtime {

/// Pinned memory with the inputs of one step, piece by piece in the order in
/// which the step asks for them. They can be loaded while the step before still
/// runs, which asked for the same pieces of its own batch.
class Staging {
public:
  /// A step begins, which takes its inputs from `io`: about so many bytes. The
  /// GPU is done with all that was here.
  void begin(const BatchIo &io, int64_t bytes);
  /// Room for a step: pinning memory while the GPU works may wait for it.
  void reserve(int64_t bytes);
  /// The values of an input: those that are here, or else from `io`.
  const void *load(BatchIo &io, int64_t input, int64_t microBatch,
                   int64_t bytes);
  /// Loads what the next step will ask for, if it asks as `now` was asked.
  void prefetch(BatchIo &next, const Staging &now);

  int64_t bytes() const { return total; }

  /// What a piece of so many bytes takes.
  static int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

private:
  struct Piece {
    int64_t input, microBatch, bytes;
    const void *data;
  };

  void rewind();
  const void *add(BatchIo &io, int64_t input, int64_t microBatch,
                  int64_t bytes);
  void *take(int64_t bytes);

  std::deque<PinnedMemory> chunks;
  size_t chunk = 0;
  int64_t used = 0;
  int64_t total = 0;
  /// What is here, and how many of them the step has got.
  std::vector<Piece> pieces;
  size_t given = 0;
  /// Set while pieces wait for their step.
  const BatchIo *prefetched = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_DEVICE_STAGING_H
