//===- Rank.h - A worker that computes on CPUs -----------------*- C++ -*-===//
//
// What the generated CPU code of a rank talks to: its arena, its links to other
// ranks, its inputs and its loss.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_RANK_H
#define PIPEWRIGHT_RUNTIME_CPU_RANK_H

#include "runtime/core/Arena.h"
#include "runtime/rank/CollectiveCalls.h"
#include "runtime/rank/Worker.h"

#include <cstdint>
#include <vector>

namespace pipewright::runtime {

class Rank : public Worker, public CollectiveCalls {
public:
  Rank(const Program &program, Transport &processes);
  ~Rank() override;

  // --- What generated code calls ---------------------------------------------

  /// The memory of a buffer; null for an absent one.
  template <class T>
  T *data(Buffer buffer) {
    return buffer ? reinterpret_cast<T *>(arena.resolve(buffer)) : nullptr;
  }

  /// Input `input` of the micro-batch, as Program::inputs numbers them.
  void loadInput(int64_t input, int64_t microBatch, Buffer destination);
  void storeOutput(int64_t output, int64_t microBatch, Buffer source);
  /// The scalar f32 loss of one micro-batch.
  void reportLoss(int64_t microBatch, Buffer loss);

  /// Never block. Each directed link is one FIFO.
  void postSend(int64_t peer, Buffer buffer);
  void postReceive(int64_t peer, Buffer buffer);
  /// Complete the oldest outstanding one of the link.
  void waitSend(int64_t peer);
  void waitReceive(int64_t peer);
  /// Completes the oldest outstanding collective, of whatever group.
  void waitCollective();

  /// Of replicas, the first begins a step with the running statistics that the
  /// step before has left, the others with zeros.
  void beginStatistics();
  /// Worker::sumStatistics.
  void mergeStatistics(int64_t stage);
  /// Worker::scaleToNorm.
  void clipGradients();

  /// Marks the start of a task ("F", "B", "I", "W", "R", "U") for the trace
  /// and the flight recorder; it ends where the next begins, or a wait for
  /// another rank.
  void task(const char *kind, int64_t stage, int64_t microBatch);

  /// Lets transfers make progress; cheap, called between kernels.
  void poll();

  /// Copies the optimizer's scalars of this update into the arena.
  void loadHyper(Buffer destination);

  // --- What the training loop calls ------------------------------------------

  void setUp() override;
  void runStep() override { program().step(*this); }
  void runEvaluation() override { program().evaluate(*this); }
  void read(Buffer buffer, void *destination) override;
  void write(Buffer buffer, const void *source) override;
  void captureGradients() override;
  double takeCollectiveWait() override;
  Traffic takeSent() override;
  int64_t arenaPeak() const override { return arena.peak(); }
  int64_t arenaBytes() const override { return arena.bytes(); }

private:
  void postCollective(const GroupRequest &request) override;
  std::vector<double>
  squaresOf(const std::vector<const TensorInfo *> &gradients) override;
  /// Those that are whole now, and will not be there later.
  void copyGradients(int64_t stageOfUpdate);

  Arena arena;
  /// Gradients that are still to be copied, one per tensor of the rank.
  std::vector<bool> capturing;
  std::vector<std::vector<float>> copied;
  double collectiveWait = 0;
};

/// Becomes a pointer of the type that a kernel's parameter has.
struct KernelPointer {
  void *address;
  template <class T>
  operator T *() const {
    return static_cast<T *>(address);
  }
};

/// The pointer that a compiled kernel gets for an argument of `launch`.
inline KernelPointer kernelArgument(Rank &rank, Buffer buffer) {
  return {rank.data<void>(buffer)};
}
inline const float *kernelArgument(Rank &, const float *pointer) {
  return pointer;
}

/// Calls a compiled kernel on buffers (or on rank.hyper()).
template <class Kernel, class... Arguments>
void launch(Rank &rank, const char *name, Kernel *kernel,
            Arguments... arguments) {
  (void)name;
  kernel(kernelArgument(rank, arguments)...);
  rank.poll();
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_RANK_H
