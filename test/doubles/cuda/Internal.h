//===- Internal.h - State of the driver double -----------------*- C++ -*-===//
//
// One process-wide State, never destroyed: threads of streams may still run
// when the process ends. Lock order: State::mutex, then Stream::mutex, then
// that of a Record; no lock is held while an operation runs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDA_INTERNAL_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDA_INTERNAL_H

#include "test/doubles/cuda/Device.h"
#include "test/doubles/cuda/Races.h"
#include "test/doubles/ptx/Ptx.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_set>

namespace pipewright::doubles {

/// Sleeps in a loop that waits for another process or a word in memory, for
/// longer as the wait gets longer: many streams wait on few cores.
class Naps {
public:
  void next() {
    std::this_thread::sleep_for(length);
    length = std::min(length * 5 / 4, std::chrono::microseconds(1000));
  }

private:
  std::chrono::microseconds length{20};
};

struct Context;
struct Stream;

/// Device addresses have this bit, so that no CPU instruction can follow one.
inline constexpr uint64_t deviceBit = uint64_t(1) << 56;

struct Allocation {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  char *host = nullptr;
  /// -1: pinned host memory.
  int device = -1;
  bool registered = false;
  /// Where it is in the file that other processes open (Ipc.h); -1: nowhere.
  int64_t place = -1;
  /// How many times it has been opened: it is another process's. 0: it is not.
  int opened = 0;
  std::unique_ptr<Shadow> shadow;

  uint64_t end() const { return begin + bytes; }
};

struct Device {
  int ordinal = 0;
  uint64_t totalBytes = 0;
  uint64_t usedBytes = 0;
  Context *primary = nullptr;
  int primaryUses = 0;
};

/// One recording of an event.
class Record {
public:
  virtual ~Record() = default;
  /// It is over; the stream's clock. On the thread of the stream.
  virtual void finish(const VectorClock &clock) = 0;
  virtual void waitUntilDone() = 0;
  virtual bool isDone() = 0;
  /// Once it is over.
  virtual VectorClock clock() = 0;
  /// The same, of events that keep times.
  virtual std::chrono::steady_clock::time_point time() = 0;
};

struct Capture;
struct SharedEvent;

struct Event {
  Context *context = nullptr;
  bool timed = true;
  bool blocking = false;
  /// Of an event within this process.
  std::shared_ptr<Record> last;
  /// Of one between processes, and its place in the file if it was made here.
  std::shared_ptr<SharedEvent> shared;
  int64_t place = -1;
  /// Where it was last recorded, if that was in a capture.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> frontier;
};

/// One entry of a stream's queue.
struct Work {
  Operation operation;
  /// Runs even when the context has failed: nothing may wait for ever.
  bool always = false;
  VectorClock hostClock;
};

struct Stream {
  Context *context = nullptr;
  unsigned index = 0;
  unsigned flags = 0;
  int priority = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  uint64_t enqueued = 0;
  uint64_t finished = 0;
  bool closing = false;
  /// Read and written by the stream's thread.
  VectorClock clock;
  std::mt19937_64 chaos;

  // What follows belongs to State::mutex.
  std::shared_ptr<Capture> capture;
  /// Nodes that the next captured operation depends on.
  std::vector<size_t> frontier;
};

struct Context {
  Device *device = nullptr;
  std::atomic<int> error{CUDA_SUCCESS};
  unsigned flags = 0;
  Stream *nullStream = nullptr;
  /// Those that the host may use, and those that have work left.
  std::unordered_set<std::shared_ptr<Stream>> streams;
  /// Devices whose memory this context may use beside its own.
  std::set<int> peers;
};

struct GraphNode {
  Operation operation;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::vector<size_t> after;
};

struct Graph {
  std::vector<GraphNode> nodes;
};

struct GraphExec {
  std::shared_ptr<const Graph> graph;
};

struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Stream *origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  uint64_t id = 0;
  bool invalid = false;
  bool ended = false;
};

struct Function;

struct ModuleHandle {
  Context *context = nullptr;
  ptx::Module module;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  std::vector<uint64_t> variables;
};

struct Function {
  ModuleHandle *module = nullptr;
  const ptx::EntryInfo *info = nullptr;
  int maxDynamicShared = 48 * 1024;
};

/// What the environment asks for.
struct Settings {
  int gpus = 1;
  bool peers = true;
  uint64_t memoryBytes = 0;
  int major = 9, minor = 0;
  int version = 13000;
  std::optional<uint64_t> chaosSeed;
  bool log = false;
  bool races = false;
  bool idle = false;
  bool ipc = true;
  uint64_t queue = 0;

  static Settings fromEnvironment();
};

struct State {
  std::mutex mutex;
  bool initialised = false;
  Settings settings;
  std::vector<std::unique_ptr<Device>> devices;
  unsigned nextStream = 0;
  uint64_t nextCapture = 1;

  // Live handles: anything else is CUDA_ERROR_INVALID_HANDLE.
  std::unordered_set<const void *> handles;
  std::vector<std::weak_ptr<Capture>> captures;

  std::shared_mutex memoryMutex;
  std::map<uint64_t, std::shared_ptr<Allocation>> allocations;
  /// Freed while work was pending; kept until it is not.
  std::vector<std::shared_ptr<Allocation>> quarantine;
  std::atomic<int64_t> pendingWork{0};

  /// What the host knows to have happened: it waited for it.
  std::mutex clockMutex;
  VectorClock hostClock;
};

State &state();

/// Null if the thread has none.
Context *&currentContext();

/// Context and stream of the operation that this thread runs; null outside of
/// one.
Context *&operationContext();
Stream *&operationStream();
/// A host function runs on this thread: it must not call the driver.
bool &insideHostFunction();

/// What nearly every call begins with: CUDA_SUCCESS, or why it may not go on.
/// `context` gets the current one.
CUresult enter(Context *&context);
CUresult enterWithoutContext();

/// And what calls such as cuMemAlloc begin with:
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the captures are lost, if this
/// thread captures in a mode that forbids them.
CUresult enterOutsideCapture(Context *&context);

/// Says on stderr what a person who debugs wants to know, and marks the
/// context as failed.
void report(Context *context, CUresult code, const std::string &message);
void note(const std::string &message);

/// Null: there is none.
Device *findDevice(CUdevice ordinal);

/// The stream behind a handle; null and an error if there is none.
CUresult findStream(CUstream handle, Context *context, Stream *&stream);
/// What calls on a stream begin with.
CUresult enterWith(CUstream handle, Context *&context, Stream *&stream);

template <class T>
bool isLive(const T *handle) {
  return state().handles.contains(handle);
}

/// Puts work on a stream or into the graph that it captures.
CUresult submit(Stream *stream, Operation operation, CUgraphNodeType type);
/// Puts work on a stream, whatever it captures. Takes no lock but the queue's.
void push(Stream *stream, Work work);
void waitFor(Stream *stream);
/// The host knows now that this has happened.
void learn(const VectorClock &clock);
/// A call for which the driver may wait until the GPU (null: every one) is
/// idle.
void mayWaitForGpu(Context *context);
/// The same for the first launch of a kernel.
void mayLoadKernel(Context *context, const void *kernel);
/// Waits while the stream has as much work as the driver takes.
void waitForRoom(Stream *stream);
Stream *makeStream(Context *context, unsigned flags, int priority);
void closeStream(Stream *stream);
void drain(Context *context);

/// The allocation that holds the address, null if none.
std::shared_ptr<Allocation> findAllocation(uint64_t address);
bool mayUse(const Context *context, const Allocation &allocation);
void insert(const std::shared_ptr<Allocation> &allocation);
std::string describeAddress(uint64_t address);

/// A pointer that the CPU can follow; DeviceFault otherwise.
char *translate(const Context *context, uint64_t address, uint64_t bytes,
                const char *what);

CUresult toResult(const ptx::Fault &fault);

/// For the race detector: what the operation of this thread touches.
void noteKernelAccess(const std::string &name, uint64_t address, uint64_t bytes,
                      bool write);
void noteAccesses(const Operation &operation);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDA_INTERNAL_H
