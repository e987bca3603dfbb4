//===- DeviceRank.h - A worker that computes on a GPU ----------*- C++ -*-===//
//
// What the generated GPU code of a rank talks to. README.md of this folder has
// the contract of streams, events and graphs. Nothing here needs a header of
// CUDA: generated code compiles without.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICERANK_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICERANK_H

#include "runtime/cuda/DeviceKernel.h"
#include "runtime/cuda/Stream.h"
#include "runtime/cuda/TaskBody.h"
#include "runtime/rank/CollectiveCalls.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/rank/Worker.h"

#include <initializer_list>
#include <memory>
#include <string>

// cuda.h declares them the same way.
struct CUstream_st;
struct CUfunc_st;

namespace pipewright::runtime {

class Device;
class DeviceLinks;
class DeviceProfile;
struct IndexFault;
class MatmulAlgorithms;

/// How a rank uses its GPU.
struct DeviceSettings {
  /// Tasks are replayed as CUDA graphs.
  bool graphs = true;
  /// Seed of random delays between everything that is enqueued, 0 for none:
  /// an event that is missing shows.
  uint64_t chaos = 0;
  /// Seconds without any progress after which a wait for the GPU gives up.
  double timeout = 60;
  /// What will be run, so that there is pinned memory for its inputs.
  bool steps = true, evaluations = true;
  /// The inputs of the next step are copied to the GPU beside the step that
  /// runs; takes memory for them there.
  bool inputsAhead = true;
  AttentionBy attention = AttentionBy::Auto;
  /// What cuDNN's attention may take at most: little beside a GPU's memory, and
  /// enough for the scores of 512 heads of 1024 rows, more than fill a GPU.
  int64_t attentionWorkspace = int64_t{1} << 30;
  /// Of products, shared by the ranks of this process; none: the heuristic's.
  std::shared_ptr<MatmulAlgorithms> algorithms;
};

class DeviceRank : public Worker, public CollectiveCalls {
public:
  /// The calling thread is the rank's from now on, on this GPU. `transport` has
  /// the processes of all replicas; `links` are connected already. Takes the
  /// arena; throws an Error when the GPU has not so much memory.
  DeviceRank(const Program &program, Transport &transport,
             std::shared_ptr<Device> device, std::unique_ptr<DeviceLinks> links,
             const DeviceSettings &settings = {});
  ~DeviceRank() override;

  // --- What generated code calls ---------------------------------------------

  /// Runs one task ("F", "B", "I", "W", "R", "U"); its body enqueues on
  /// `compute`, and is replayed as a CUDA graph from its third run on.
  void task(const char *kind, int64_t stage, int64_t microBatch, TaskBody body);
  /// Runs the next part of that task, which others have begun to use bytes of.
  void resume(TaskBody body);

  /// As those of a CPU's rank (cpu/Rank.h), on `compute`.
  void loadInput(int64_t input, int64_t microBatch, Buffer destination);
  void storeOutput(int64_t output, int64_t microBatch, Buffer source);
  void reportLoss(int64_t microBatch, Buffer loss);
  void loadHyper(Buffer destination);
  void beginUpdate(int64_t number) override;
  void beginStatistics();
  /// Wait for what `compute` has been given; numbers of other replicas and
  /// ranks meet on the hosts.
  void mergeStatistics(int64_t stage);
  void clipGradients();

  /// Never block. `event` is recorded when the transfer is over.
  void postSend(int64_t peer, Buffer buffer, int64_t event);
  void postReceive(int64_t peer, Buffer buffer, int64_t event);

  /// Copies a stash to the host's memory, of which `host` is a range, or back.
  /// Never block. `event` is recorded when the copy is over.
  void copyToHost(Buffer stash, Buffer host, int64_t event);
  void copyFromHost(Buffer host, Buffer stash, int64_t event);

  /// Records the event behind what the stream has got so far.
  void record(Stream stream, int64_t event);
  /// Makes the stream wait for the event.
  void wait(Stream stream, int64_t event);

  // --- What kernels call -----------------------------------------------------

  /// The stream that kernels and libraries enqueue on.
  CUstream_st *computeStream();
  /// Address on the GPU; null for an absent buffer.
  template <class T>
  T *device(Buffer buffer) {
    return buffer ? static_cast<T *>(resolve(buffer)) : nullptr;
  }
  /// Memory that every call on `compute` may overwrite; at least `bytes` must
  /// have been asked for in setUp.
  void reserveWorkspace(int64_t bytes);
  void *workspace(int64_t bytes);
  /// Device memory that holds {uint64 seed, uint64 step} of the running step.
  const uint64_t *randomState() const;
  /// Device memory where a kernel notes an index that its table has not.
  IndexFault *indexFault() const;
  /// The GPU: its properties, and kernels of other images than the program's.
  Device &gpu();
  /// How many multiprocessors a kernel that takes all of the GPU should take:
  /// those that no transfer holds while it waits, but half of all at least. 0:
  /// all.
  int64_t freeMultiprocessors() const;
  const DeviceSettings &settings() const;
  /// A line for the user, said when all ranks have been set up.
  void remark(const std::string &line) { remarkLines += line + "\n"; }
  /// The functions of a kernel of the program, one for each launch.
  const std::vector<CUfunc_st *> &functions(const DeviceKernel &kernel);
  /// What measures calls; null unless the running step is profiled.
  DeviceProfile *profile();

  // --- What the training loop calls ------------------------------------------

  void setUp() override;
  void rehearse() override;
  void runStep() override;
  void runEvaluation() override;
  void read(Buffer buffer, void *destination) override;
  void write(Buffer buffer, const void *source) override;
  bool canBeReadAside() const override { return false; }
  void abort() override;
  void captureGradients() override;
  int64_t arenaPeak() const override;
  int64_t arenaBytes() const override;
  int64_t aheadBytes() const override;
  int64_t pinnedBytes() const override;
  int64_t graphs() const override;
  std::string remarks() const override { return remarkLines; }

private:
  struct Parts;

  void *resolve(Buffer buffer);
  void post(bool isSend, int64_t peer, Buffer buffer, int64_t event);
  template <class Copy>
  void copy(Stream stream, int64_t bytes, int64_t event, const Copy &enqueue);
  /// With an event like that of a transfer; a GPU needs no scratch memory.
  void postCollective(const GroupRequest &request) override;
  void run(bool evaluation, const EntryPoint &function);
  void begin(bool evaluation);
  void beginStaging(bool evaluation);
  bool wantsAnyOutput();
  void finish();
  void refuseIndices();
  void takeGradients();
  void enqueueGradients(int64_t stageOfUpdate);
  void mailScalars();
  // Of a step that is compared; nothing in others.
  void digestValue(StepDigest::Kind kind, int64_t place, int64_t number,
                   Buffer buffer);
  void digestPost(bool isSend, int64_t peer, Buffer buffer, int64_t event);
  void digestCollective(const GroupRequest &request);
  void waitForCollectives();
  void digestWait(Stream stream, int64_t event);
  void addSquares();
  std::vector<double>
  squaresOf(const std::vector<const TensorInfo *> &gradients) override;

  std::unique_ptr<Parts> parts;
  std::string remarkLines;
};

/// Enqueues a compiled kernel.
void launch(DeviceRank &rank, const DeviceKernel &kernel,
            std::initializer_list<Buffer> arguments);
/// In setUp, once for each kernel: finds its functions, reserves scratch.
void prepare(DeviceRank &rank, const DeviceKernel &kernel);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICERANK_H
