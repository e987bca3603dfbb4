//===- InputsAhead.h - Inputs of the next step, on the GPU ------*- C++ -*-===//
//
// While a step runs, the inputs of the next one are copied to the GPU, on a
// stream of their own. Otherwise the copies would stand between the tasks of
// that step: 256 images take as long as a fifteenth of a ResNet-50's step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_INPUTSAHEAD_H
#define PIPEWRIGHT_RUNTIME_CUDA_INPUTSAHEAD_H

#include "runtime/cuda/Chaos.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Staging.h"

namespace pipewright::runtime {

class InputsAhead {
public:
  /// Smaller inputs take no longer within a step.
  static constexpr int64_t leastBytes = int64_t{1} << 16;

  InputsAhead() = default;
  InputsAhead(const InputsAhead &) = delete;
  InputsAhead &operator=(const InputsAhead &) = delete;
  ~InputsAhead();

  /// Takes memory of the current GPU for the inputs of one step, before the
  /// first: so many bytes, each padded as in Staging. Without it nothing is
  /// sent.
  void reserve(const Device &device, int64_t bytes);
  /// Enqueues the copies of what waits for the next step. The step that runs
  /// has been enqueued whole: each copy waits until it has taken what was in
  /// the same place.
  void send(Staging &next, Chaos &chaos);
  /// Enqueues a copy of an input to where the step reads it, on `stream`. False
  /// if it was not sent.
  bool take(const Staging::Piece &piece, CUdeviceptr destination,
            CUstream stream);
  int64_t bytes() const { return memory.bytes(); }

private:
  /// Where an input of a micro-batch comes to lie.
  struct Place {
    int64_t input, microBatch, bytes, begin;
    /// The copy to the GPU is over; a step has taken what was there.
    CUevent sent = nullptr, taken = nullptr;
  };

  /// Its number; -1 if there is no room left.
  int64_t placeOf(const Staging::Piece &piece);

  DeviceMemory memory;
  int64_t used = 0;
  CUstream copying = nullptr;
  std::vector<Place> places;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_INPUTSAHEAD_H
