//===- Rank.h - One worker of the pipeline ---------------------*- C++ -*-===//
//
// What the generated code of a rank talks to: its arena, its links to other
// ranks, its inputs and its loss. One thread uses a Rank, and only one.
//
// A Rank computes on CPUs; one that computes on a GPU (cuda/DeviceRank.h)
// overrides what is virtual here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_RANK_H
#define PIPEWRIGHT_RUNTIME_RANK_RANK_H

#include "runtime/core/Arena.h"
#include "runtime/core/Program.h"
#include "runtime/rank/GroupRequest.h"
#include "runtime/trace/FlightRecorder.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class Profile;
class RankGroups;
class StepDigest;
class Trace;
class Transport;

/// Fills and takes what crosses the border of a step.
class BatchIo {
public:
  virtual ~BatchIo() = default;
  /// Writes the input's values of one micro-batch to `destination`.
  virtual void load(int64_t input, int64_t microBatch, void *destination,
                    int64_t bytes) = 0;
  /// Takes the output's values of one micro-batch.
  virtual void store(int64_t output, int64_t microBatch, const void *source,
                     int64_t bytes) = 0;
  /// That of the step after this one if it is known: its inputs may be loaded
  /// while this one runs. The same object must be the next step's BatchIo.
  virtual BatchIo *next() { return nullptr; }
  /// Whether `store` has a use for it; else it need not be called.
  virtual bool wants(int64_t output, int64_t microBatch) {
    (void)output, (void)microBatch;
    return true;
  }
};

/// State that a kernel library keeps in a rank: primitives, packed weights.
class LibraryState {
public:
  virtual ~LibraryState() = default;
};

/// Added in an order that follows from the count alone.
double sumOfSquares(const float *values, int64_t count);

class Rank {
public:
  /// `processes` has those of all replicas; this is one of them.
  Rank(const Program &program, Transport &processes);
  virtual ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  // --- What generated code calls -------------------------------------------

  /// The memory of a buffer; null for an absent one.
  template <class T>
  T *data(Buffer buffer) {
    return buffer ? reinterpret_cast<T *>(arena.resolve(buffer)) : nullptr;
  }

  /// Input `input` of the micro-batch, as Program::inputs numbers them.
  virtual void loadInput(int64_t input, int64_t microBatch, Buffer destination);
  virtual void storeOutput(int64_t output, int64_t microBatch, Buffer source);
  /// The scalar f32 loss of one micro-batch.
  virtual void reportLoss(int64_t microBatch, Buffer loss);

  /// Never block. Each directed link is one FIFO.
  void postSend(int64_t peer, Buffer buffer);
  void postReceive(int64_t peer, Buffer buffer);
  /// Complete the oldest outstanding one of the link.
  void waitSend(int64_t peer);
  void waitReceive(int64_t peer);

  /// What the ranks of a group, or all replicas, do together with a range that
  /// each of them has; never block. All members give the same in the same
  /// order.
  PIPEWRIGHT_COLLECTIVE_KINDS(PIPEWRIGHT_COLLECTIVE_CALL)
  /// Completes the oldest outstanding one, of whatever group.
  void waitCollective();

  /// Of replicas, the first begins a step with the running statistics that the
  /// step before has left, the others with zeros.
  virtual void beginStatistics();
  /// Makes of the running statistics that replicas have of a stage what one
  /// replica would have that runs the micro-batches of all of them, in the
  /// order of the batch. Waits for all replicas, which call it alike; no
  /// collective may be under way.
  virtual void mergeStatistics(int64_t stage);

  /// What this replica updates of a flat range that all replicas share.
  Buffer shardOf(Buffer range) const {
    const int64_t bytes = range.bytes / whole.replicas;
    return range.at(replica() * bytes, bytes);
  }

  /// Scales what updates take of all gradients of the model so that their norm
  /// is at most the one that is allowed. Waits for all ranks of the replica,
  /// which call it alike when their gradients are whole; no collective may be
  /// under way.
  virtual void clipGradients();

  /// Marks the begin of a task ("F", "B", "I", "W", "R", "U") for the trace
  /// and the flight recorder; it ends where the next begins, or a wait for
  /// another rank.
  void task(const char *kind, int64_t stage, int64_t microBatch) {
    recorder.task(kind[0], stage, kind[0] == 'U' ? updateNumber : microBatch);
    if (observed)
      observeTask(kind, stage, microBatch);
  }

  /// Lets transfers make progress; cheap, called between kernels.
  void poll();

  /// Begins update `number` of a step that has several: what optimizer kernels
  /// are told changes from update to update.
  virtual void beginUpdate(int64_t number);
  /// The optimizer's scalars of this update, for its kernels.
  const float *hyper() const { return scalars.data(); }
  /// The same, copied into the arena.
  virtual void loadHyper(Buffer destination);

  /// Counts from 0; part of the random numbers' counter.
  int64_t step() const { return stepNumber; }
  /// The other part of it: the number of one of this rank's micro-batches among
  /// those of all replicas.
  int64_t numberInBatch(int64_t microBatch) const {
    return whole.numberInBatch(microBatch, replica(), whole.replicas);
  }
  uint64_t seed() const { return seedValue; }
  /// In the pipeline, and so the same in each replica.
  int64_t number() const { return place.position; }

  // --- What kernels call ---------------------------------------------------

  /// Threads that a kernel may use.
  int64_t threads() const { return threadCount; }
  /// Grows when weights may have changed, so that packed ones are stale.
  int64_t weightVersion() const { return version; }
  /// Bytes that a library holds for this rank beside the arena.
  void countScratch(int64_t bytes) { scratch += bytes; }
  /// The rank's own state of a kernel library, made at the first call.
  template <class T>
  T &library() {
    static const char key = 0;
    LibraryState *&slot = librarySlot(&key);
    if (!slot)
      slot = new T();
    return *static_cast<T *>(slot);
  }

  // --- What the training loop calls ----------------------------------------

  /// Called between setUp and the loading of weights. It does what would be
  /// slow, or no longer allowed, when a step did it for the first time.
  virtual void rehearse() {}
  /// One call of the program's function, from begin to end.
  virtual void runStep() { program().step(*this); }
  virtual void runEvaluation() { program().evaluate(*this); }
  /// Copy a buffer to memory of the host, and back; between steps.
  virtual void read(Buffer buffer, void *destination);
  virtual void write(Buffer buffer, const void *source);
  /// Whether another thread may call `read` while a step runs, of what the step
  /// does not change meanwhile.
  virtual bool canBeReadAside() const { return true; }
  /// Calls this once, when the next update task begins.
  void setBeforeUpdate(std::function<void()> wait);
  /// This rank has failed: frees the ranks that wait for it, as far as the
  /// transport does not.
  virtual void abort() {}

  FlightRecorder &flight() { return recorder; }

  int64_t replica() const { return place.replica; }
  const RankProgram &program() const { return whole.ranks[number()]; }
  const Program &wholeProgram() const { return whole; }
  /// All processes, of whatever replica.
  Transport &transport() { return processes; }
  /// The ranks of this replica, by number.
  Transport &pipeline();
  void setBatchIo(BatchIo *newIo) { io = newIo; }
  void setSeed(uint64_t seed) { seedValue = seed; }
  void setThreads(int64_t count) { threadCount = count; }
  /// Records the following tasks; null stops it.
  void setTrace(Trace *newTrace);
  /// Measures the calls of the following steps, on a GPU; null stops it.
  void setProfile(Profile *newProfile) { profile = newProfile; }
  /// Collects hashes of what the rank takes and gives; null stops it.
  void setDigest(StepDigest *newDigest);
  /// Begins step `step`, with all that changes from step to step.
  void beginStep(int64_t step, float learningRate) {
    beginStep(step, std::vector<float>{learningRate});
  }
  /// One learning rate for each update of the step.
  void beginStep(int64_t step, std::vector<float> learningRates);
  /// The largest norm of all gradients, where the program clips them.
  void setClipNorm(double largest) { clipNorm = largest; }
  /// What the norm was before it was clipped last.
  double gradientNorm() const { return norm; }
  /// Sum and count of the losses reported since the last call.
  std::pair<double, int64_t> takeLoss();
  /// The same for the micro-batches of each update of a step.
  std::vector<std::pair<double, int64_t>> takeLosses();
  /// Keep a copy of all gradients at the next "U" task.
  virtual void captureGradients();
  /// What was captured, one per tensor of the rank (empty: no gradient),
  /// scaled to the mean over the batch.
  const std::vector<std::vector<float>> &gradients() const { return captured; }
  virtual int64_t arenaPeak() const { return arena.peak(); }
  virtual int64_t arenaBytes() const { return arena.bytes(); }
  int64_t scratchBytes() const { return scratch; }
  /// Memory of the host that a GPU reads and writes.
  virtual int64_t pinnedBytes() const { return 0; }
  /// How many tasks are replayed as CUDA graphs.
  virtual int64_t graphs() const { return 0; }
  /// What setting up decided that users should know, in lines.
  virtual std::string remarks() const { return ""; }

protected:
  /// A rank whose arena is elsewhere.
  struct NoArena {};
  Rank(const Program &program, Transport &processes, NoArena);

  BatchIo &batchIo() { return *io; }
  Trace *tracing() const { return trace; }
  Profile *profiling() const { return profile; }
  /// The number of the update that runs.
  int64_t update() const { return updateNumber; }
  void addLoss(int64_t microBatch, float loss);
  /// Ends the state of kernel libraries now; the destructor does it otherwise.
  void dropLibraries();
  /// Leaves them to the end of the process.
  void leakLibraries() { libraries.clear(); }
  virtual void postCollective(const GroupRequest &request);
  /// The sum of the squares of each gradient.
  virtual std::vector<double>
  squaresOf(const std::vector<const TensorInfo *> &gradients);
  /// Gradients as they were summed, one per tensor of the rank.
  void keepGradients(std::vector<std::vector<float>> sums);

private:
  bool isObserved() const {
    return trace || digest || capturing || beforeUpdate;
  }
  void observeTask(const char *kind, int64_t stage, int64_t microBatch);
  void copyGradients();
  LibraryState *&librarySlot(const void *key);

  const Program &whole;
  const Place place;
  Transport &processes;
  const std::unique_ptr<RankGroups> groups;
  FlightRecorder &recorder;
  Arena arena;
  BatchIo *io = nullptr;
  Trace *trace = nullptr;
  Profile *profile = nullptr;
  StepDigest *digest = nullptr;
  std::function<void()> beforeUpdate;
  bool observed = false;
  bool capturing = false;
  std::vector<float> scalars;
  int64_t stepNumber = 0;
  int64_t updateNumber = 0;
  uint64_t seedValue = 0;
  int64_t threadCount = 1;
  int64_t version = 0;
  int64_t scratch = 0;
  std::vector<float> rates;
  double clipNorm;
  double norm = 0;
  /// The sum and the count of losses of each update.
  std::vector<std::pair<double, int64_t>> losses;
  std::vector<std::vector<float>> captured;
  std::vector<std::pair<const void *, LibraryState *>> libraries;
};

/// Becomes a pointer of the type that a kernel's parameter has.
struct KernelPointer {
  void *address;
  template <class T>
  operator T *() const {
    return static_cast<T *>(address);
  }
};

/// Stands before generated functions of thousands of calls: what clang and GCC
/// do to optimize such takes quadratic time, and only the calls between kernels
/// would be faster.
#if defined(__clang__)
#define PIPEWRIGHT_LONG_FUNCTION __attribute__((optnone))
#else
#define PIPEWRIGHT_LONG_FUNCTION __attribute__((optimize(0)))
#endif

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

#endif // PIPEWRIGHT_RUNTIME_RANK_RANK_H
