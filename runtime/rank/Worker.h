//===- Worker.h - One process or thread of a run ---------------*- C++ -*-===//
//
// Computes one rank of one replica. What the training loop needs of it is the
// same on every target and stands here. What generated code calls is in the
// class that a target derives from it (cpu/Rank.h, cuda/DeviceRank.h). One
// thread uses a Worker, and only one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_WORKER_H
#define PIPEWRIGHT_RUNTIME_RANK_WORKER_H

#include "runtime/core/Program.h"
#include "runtime/trace/FlightRecorder.h"

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

class Worker {
public:
  /// `processes` has those of all replicas; this is one of them.
  Worker(const Program &program, Transport &processes);
  virtual ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  const Program &wholeProgram() const { return whole; }
  const RankProgram &program() const { return whole.ranks[number()]; }
  /// In the pipeline, and so the same in each replica.
  int64_t number() const { return place.position; }
  int64_t replica() const { return place.replica; }
  /// All processes, of whatever replica.
  Transport &transport() { return processes; }
  /// The ranks of this replica, by number.
  Transport &pipeline();
  FlightRecorder &flight() { return recorder; }

  // --- Steps -----------------------------------------------------------------

  /// Once, before all else.
  virtual void setUp() = 0;
  /// Once, behind it and before weights are loaded: does what would be slow, or
  /// no longer allowed, when a step did it for the first time.
  virtual void rehearse() {}
  /// Begins step `step`, with all that changes from step to step.
  void beginStep(int64_t step, float learningRate) {
    beginStep(step, std::vector<float>{learningRate});
  }
  /// One learning rate for each update of the step.
  void beginStep(int64_t step, std::vector<float> learningRates);
  /// Begins update `number` of a step that has several: what optimizer kernels
  /// are told changes from update to update.
  virtual void beginUpdate(int64_t number);
  /// One call of the program's function, from begin to end.
  virtual void runStep() = 0;
  virtual void runEvaluation() = 0;
  /// This rank has failed: frees the ranks that wait for it, as far as the
  /// transport does not.
  virtual void abort() {}

  void setBatchIo(BatchIo *newIo) { io = newIo; }
  void setSeed(uint64_t seed) { seedValue = seed; }
  /// The largest norm of all gradients, where the program clips them.
  void setClipNorm(double largest) { clipNorm = largest; }
  /// Whether a step is skipped that has gradients which are no finite numbers;
  /// else it ends the run.
  void setSkipsNan(bool skips) { skipsNanSteps = skips; }
  bool skipsNan() const { return skipsNanSteps; }
  /// Updates of the run so far that were skipped: averages of the optimizer do
  /// not know of them.
  void setSkippedUpdates(int64_t count) { skippedUpdates = count; }
  /// The weight whose gradient made this step skip its update; null where none
  /// did.
  const char *skippedBecause() const { return notFinite; }
  /// What the norm was before it was clipped last.
  double gradientNorm() const { return norm; }
  /// Sum and count of the losses reported since the last call.
  std::pair<double, int64_t> takeLoss();
  /// The same for the micro-batches of each update of a step.
  std::vector<std::pair<double, int64_t>> takeLosses();

  /// The seconds since the last call in which the rank stood still for what its
  /// groups do; negative where that is not measured.
  virtual double takeCollectiveWait() { return -1; }
  /// What generated code has sent to other ranks and replicas since the last
  /// call; negative where that is not counted.
  virtual Traffic takeSent() { return {-1, -1}; }

  /// Counts from 0; part of the random numbers' counter.
  int64_t step() const { return stepNumber; }
  /// The other part of it: the number of one of this rank's micro-batches among
  /// those of all replicas.
  int64_t numberInBatch(int64_t microBatch) const {
    return whole.numberInBatch(microBatch, replica(), whole.replicas);
  }
  /// Whether anybody has a use for an output of the micro-batch. If not,
  /// generated code does not launch the kernels that serve outputs alone.
  bool wantsOutputs(int64_t microBatch);
  uint64_t seed() const { return seedValue; }
  /// The optimizer's scalars of this update, for its kernels.
  const float *hyper() const { return scalars.data(); }

  // --- Memory ----------------------------------------------------------------

  /// Copy a buffer to memory of the host, and back; between steps.
  virtual void read(Buffer buffer, void *destination) = 0;
  virtual void write(Buffer buffer, const void *source) = 0;
  /// Whether another thread may call `read` while a step runs, of what the step
  /// does not change meanwhile.
  virtual bool canBeReadAside() const { return true; }
  /// Calls this once, when the next update task begins; where it can be read
  /// aside.
  void setBeforeUpdate(std::function<void()> wait) {
    beforeUpdate = std::move(wait);
  }
  /// What this replica updates of a flat range that all replicas share.
  Buffer shardOf(Buffer range) const {
    const int64_t bytes = range.bytes / whole.replicas;
    return range.at(replica() * bytes, bytes);
  }
  /// Keeps a copy of all gradients of the next step, each when it is whole: at
  /// the first "U" task, or at its stage's.
  virtual void captureGradients() = 0;
  /// What was captured, one per tensor of the rank (empty: no gradient),
  /// scaled to the mean over the batch.
  const std::vector<std::vector<float>> &gradients() const { return captured; }

  virtual int64_t arenaPeak() const = 0;
  virtual int64_t arenaBytes() const = 0;
  int64_t scratchBytes() const { return scratch; }
  /// Memory of the GPU for the inputs of the next step.
  virtual int64_t aheadBytes() const { return 0; }
  /// Memory of the host that a GPU reads and writes.
  virtual int64_t pinnedBytes() const { return 0; }

  // --- Observation -----------------------------------------------------------

  /// Records the following tasks; null stops it.
  void setTrace(Trace *newTrace) { trace = newTrace; }
  /// Measures the calls of the following steps, on a GPU; null stops it.
  void setProfile(Profile *newProfile) { profile = newProfile; }
  /// Collects hashes of what the rank takes and gives; null stops it.
  void setDigest(StepDigest *newDigest) { digest = newDigest; }
  /// How many tasks are replayed as CUDA graphs.
  virtual int64_t graphs() const { return 0; }
  /// What setting up decided that users should know, in lines.
  virtual std::string remarks() const { return ""; }

  // --- What kernel libraries ask and keep ------------------------------------

  /// Threads that a kernel may use.
  int64_t threads() const { return threadCount; }
  void setThreads(int64_t count) { threadCount = count; }
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

protected:
  BatchIo &batchIo() { return *io; }
  Trace *tracing() const { return trace; }
  Profile *profiling() const { return profile; }
  StepDigest *digesting() const { return digest; }
  RankGroups &collectives() { return *groups; }
  /// The number of the update that runs.
  int64_t update() const { return updateNumber; }
  void addLoss(int64_t microBatch, float loss);
  /// Calls what waits for the next update task.
  void callBeforeUpdate();
  /// Takes gradients as they were summed, one per tensor of the rank.
  void keepGradients(std::vector<std::vector<float>> sums);

  /// Blocks until the oldest collective is over; the number of its group.
  int64_t finishCollective();
  /// Makes of the running statistics that replicas have of a stage what one
  /// replica would have that runs the micro-batches of all of them, in the
  /// order of the batch. Waits for all replicas, which call it alike; no
  /// collective may be under way.
  void sumStatistics(int64_t stage);
  /// Scales what updates take of all gradients of the model so that their norm
  /// is at most the one that is allowed, or tells them to skip the step. Waits
  /// for all ranks of the replica, which call it alike when their gradients are
  /// whole; no collective may be under way.
  void scaleToNorm();
  /// The sum of the squares of each gradient.
  virtual std::vector<double>
  squaresOf(const std::vector<const TensorInfo *> &gradients) = 0;

  /// Before its memory goes, and that of libraries: no other member of a group
  /// uses these from now on.
  void leaveGroups();
  /// Ends the state of kernel libraries now; the destructor does it otherwise.
  void dropLibraries();
  /// Leaves them to the end of the process.
  void leakLibraries() { libraries.clear(); }

private:
  LibraryState *&librarySlot(const void *key);

  const Program &whole;
  const Place place;
  Transport &processes;
  std::unique_ptr<RankGroups> groups;
  FlightRecorder &recorder;
  BatchIo *io = nullptr;
  Trace *trace = nullptr;
  Profile *profile = nullptr;
  StepDigest *digest = nullptr;
  std::function<void()> beforeUpdate;
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
  bool skipsNanSteps = false;
  int64_t skippedUpdates = 0;
  const char *notFinite = nullptr;
  /// The sum and the count of losses of each update.
  std::vector<std::pair<double, int64_t>> losses;
  std::vector<std::vector<float>> captured;
  std::vector<std::pair<const void *, LibraryState *>> libraries;
};

/// Stands before generated functions of thousands of calls: what clang and GCC
/// do to optimize such takes quadratic time, and only the calls between kernels
/// would be faster.
#if defined(__clang__)
#define PIPEWRIGHT_LONG_FUNCTION __attribute__((optnone))
#else
#define PIPEWRIGHT_LONG_FUNCTION __attribute__((optimize(0)))
#endif

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_RANK_WORKER_H
