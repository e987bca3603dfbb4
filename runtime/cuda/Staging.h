//===- Staging.h - Where inputs wait for the GPU ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_STAGING_H
#define PIPEWRIGHT_RUNTIME_CUDA_STAGING_H

#include "runtime/cuda/Device.h"
#include "runtime/rank/Worker.h"

#include <vector>

namespace pipewright::runtime {

/// Pinned memory with the inputs of one step, piece by piece. They can be
/// loaded while the step before still runs, which asked for the same pieces of
/// its own batch.
class Staging {
public:
  struct Piece {
    int64_t input, microBatch, bytes;
    const void *data;
    /// Where InputsAhead has sent it; -1: nowhere.
    int64_t place = -1;
  };

  /// Room for all inputs of a step, each micro-batch once; before the first:
  /// to pin memory the driver may wait for the GPU.
  void reserve(int64_t bytes);
  /// A step begins, which takes its inputs from `io`. The GPU is done with all
  /// that was here.
  void begin(const BatchIo &io);
  /// The values of an input: those that are here, or else from `io`. Throws an
  /// Error if more is asked for than there is room for.
  const Piece &load(BatchIo &io, int64_t input, int64_t microBatch,
                    int64_t bytes);
  /// All that is here.
  std::vector<Piece> &pieces() { return loaded; }
  /// Loads what the next step will ask for, if it asks for what `now` has.
  void prefetch(BatchIo &next, const Staging &now);

  int64_t bytes() const { return memory.bytes(); }

  /// What the inputs of a step take that a rank reads.
  static int64_t bytesOfStep(const Program &program, int64_t rank);

  /// What a piece of so many bytes takes.
  static int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

private:
  void rewind();

  PinnedMemory memory;
  int64_t used = 0;
  std::vector<Piece> loaded;
  /// Set while pieces wait for their step.
  const BatchIo *prefetched = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_STAGING_H
