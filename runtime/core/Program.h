//===- Program.h - What the compiler tells the runtime ---------*- C++ -*-===//
//
// The generated main.cpp fills one constant Program and calls runProgram.
// All structs are aggregates for designated initializers.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_PROGRAM_H
#define PIPEWRIGHT_RUNTIME_CORE_PROGRAM_H

#include "runtime/core/Arena.h"
#include "runtime/core/ElementType.h"
#include "runtime/core/Mesh.h"
#include "runtime/core/Optimizer.h"
#include "runtime/core/Table.h"
#include "runtime/core/Traffic.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace pipewright::runtime {

struct DeviceProgram;

/// What a tensor of a rank is.
enum class Role {
  // What a model has and files of weights hold.
  Parameter,
  State,
  Constant,
  // What belongs to a parameter.
  /// Where a step collects its gradient.
  Gradient,
  OptimizerState,
  /// Its copy in bf16 that tasks read; whoever writes the parameter writes
  /// this.
  Rounded,
  /// Room for what an update has replaced while tasks still read it.
  OldVersion,
};

/// Where a tensor lies in a flat range that replicas share: the n-th replica
/// has the n-th part of the range, and parts are equally long.
struct Sharding {
  /// Bytes of the range before the tensor.
  int64_t offset = 0;
  /// Bytes of a part; 0: each replica has all of the range.
  int64_t partBytes = 0;
  /// A replica has room for its part alone; the tensor's buffer is where it
  /// would lie if that of the first replica went on.
  bool isAlone = false;
};

/// What one replica has of a tensor.
struct TensorPart {
  /// Bytes of the tensor before it.
  int64_t begin = 0;
  Buffer buffer;
};

/// A tensor that one rank keeps from step to step.
struct TensorInfo {
  /// The weight's name in weights.safetensors, whatever it is of the weight.
  const char *name = "";
  Buffer buffer;
  /// Dimensions joined by 'x', such as "768x3072"; "" is a scalar.
  const char *shape = "";
  Role role = Role::Parameter;
  /// Saved from here; what belongs to further copies of a tied weight is not.
  bool owner = true;
  ElementType type = ElementType::F32;
  /// Filters [o, c, kh, kw] that lie as [o, kh, kw, c] in memory; `shape` and
  /// all files stay as the model has them.
  bool channelsLast = false;
  /// Which of an optimizer's states this is.
  const char *state = "";
  /// What this is a copy of when weights have been loaded, of as many elements;
  /// zero bytes: of nothing.
  Buffer from = {};
  /// The share of a running statistic that is left after a micro-batch; 1: it
  /// does not change.
  float decay = 1;
  /// The stage whose forwards write it, where they do. Of a gradient: the stage
  /// whose update comes when its own are whole; -1: all of the rank's are when
  /// its first update begins.
  int64_t stage = -1;
  /// Of a gradient: replicas have whole sums of their own parts alone. Of a
  /// weight, or its bf16 copy: they have new values of these alone, until the
  /// next step puts them together, or tasks read its bf16 copy.
  /// Of the optimizer's state, of gradients that are kept in parts, and of
  /// weights that are put together for tasks alone: there is nothing else.
  Sharding shard = {};

  bool isSharded() const { return shard.partBytes > 0; }
  /// What is right of it on a replica; no bytes if nothing is.
  TensorPart partOf(int64_t replica) const {
    if (!isSharded())
      return {0, buffer};
    const int64_t before = replica * shard.partBytes;
    const int64_t begin = std::max(before - shard.offset, int64_t{0});
    const int64_t end =
        std::min(before + shard.partBytes - shard.offset, buffer.bytes);
    if (begin >= end)
      return {};
    const int64_t absent = shard.isAlone ? before : 0;
    return {begin, {buffer.offset + begin - absent, end - begin}};
  }
  /// What a replica has room for.
  TensorPart storedOn(int64_t replica) const {
    return shard.isAlone ? partOf(replica) : TensorPart{0, buffer};
  }
  /// The replica that has its first byte.
  int64_t firstReplica() const {
    return isSharded() ? shard.offset / shard.partBytes : 0;
  }

  /// A tensor that files of weights have.
  bool isWeight() const { return role <= Role::Constant; }
  /// One that the next step reads: gradients are begun anew.
  bool outlastsStep() const { return role != Role::Gradient; }
  /// A running statistic, as opposed to a state that steps leave alone.
  bool isRunning() const { return role == Role::State && decay != 1; }
  /// A gradient that is whole when a "U" task of the rank begins, the first one
  /// or its stage's: the sum over micro-batches.
  bool isWholeGradient() const { return role == Role::Gradient && owner; }
};

/// What is counted of an input that has labels, for a loss to divide by.
struct LabelCount {
  /// The input; -1: nothing is counted.
  int64_t input = -1;
  /// Labels of this value do not count.
  int64_t ignored = INT64_MIN;
  /// Elements [begin, end) of each row of dimension 0 are the loss's labels.
  Table<std::pair<int64_t, int64_t>> ranges = {};
};

/// An input of the model, as one micro-batch has it.
struct InputInfo {
  const char *name = "";
  ElementType type = ElementType::F32;
  /// Dimension 0 is the samples, or a multiple of them (flattened labels).
  Table<int64_t> shape;
  /// Values must be in [0, limit); 0 means no limit.
  int64_t limit = 0;
  /// The one value that is allowed beside these (a loss's ignore_index).
  int64_t ignored = INT64_MIN;
  /// Set for a scalar that is no data: the labels that an update trains on,
  /// divided by its micro-batches; 1 where there are none.
  LabelCount counted = {};

  bool isData() const { return counted.input < 0; }
};

/// An output of the model, as one micro-batch has it.
struct OutputInfo {
  const char *name = "";
  ElementType type = ElementType::F32;
  Table<int64_t> shape;
};

/// One line of the memory report: what the planned bytes are for.
struct MemoryLine {
  const char *what = "";
  int64_t bytes = 0;
};

/// A function of the program for a rank, which is of the class that the target
/// has for ranks; null: there is none.
class EntryPoint {
public:
  EntryPoint() = default;
  template <class AnyRank>
  EntryPoint(void (*function)(AnyRank &))
      : function(reinterpret_cast<void (*)()>(function)) {}

  explicit operator bool() const { return function; }
  template <class AnyRank>
  void operator()(AnyRank &rank) const {
    reinterpret_cast<void (*)(AnyRank &)>(function)(rank);
  }

private:
  void (*function)() = nullptr;
};

struct RankProgram {
  int64_t arenaBytes = 0;
  Table<TensorInfo> tensors;
  /// The inputs (by number) that this rank loads.
  Table<int64_t> inputs = {};
  /// One step over all micro-batches.
  EntryPoint step;
  /// Forward only, all micro-batches; reports the loss, stores the outputs.
  /// Null: the program was compiled without evaluation.
  EntryPoint evaluate;
  /// Creates library primitives and scratch; called once. May be null.
  EntryPoint setUp;
  Table<MemoryLine> memory = {};
  double predictedStepSeconds = 0;
  // What follows is for ranks that are GPUs.
  /// The ranks that this one sends to in `step` or `evaluate`, ascending: each
  /// is a directed link with a stream of its own.
  Table<int64_t> sendsTo = {};
  /// Events are numbered from 0 to this, in `step` and in `evaluate`.
  int64_t events = 0;
  int64_t evaluateEvents = 0;
  /// Memory of the host for stashes that live there, which is pinned.
  int64_t hostBytes = 0;
};

/// Who does something together.
struct GroupInfo {
  /// In what members differ. Pipe: they are the ranks of one replica that are
  /// listed; Data: they are the replicas of a rank.
  Axis axis = Axis::Pipe;
  /// What a group adds is added in this order.
  Table<int64_t> ranks = {};

  int64_t size(int64_t replicas) const {
    return axis == Axis::Data ? replicas : static_cast<int64_t>(ranks.size());
  }
  /// Whether a rank is a member, or its replicas are.
  bool has(int64_t rank) const {
    return axis == Axis::Data ||
           std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
};

struct Program {
  const char *name = "model";
  /// Copies of all ranks. Each runs the same step on micro-batches of its own:
  /// the first on the first ones of a batch, and so on.
  int64_t replicas = 1;
  /// How the processes of all replicas are numbered.
  ProcessMap processMap = ProcessMap::Replicas;
  /// Of each replica.
  int64_t microBatches = 1;
  int64_t microBatchSize = 1;
  /// How often one call of `step` updates the weights; each update takes its
  /// share of the micro-batches, in order.
  int64_t updates = 1;
  OptimizerInfo optimizer;
  Table<InputInfo> inputs;
  Table<OutputInfo> outputs;
  Table<RankProgram> ranks;
  /// Those that do something together, by number.
  Table<GroupInfo> groups = {};
  /// How many seconds the rank that waits longest for its groups is predicted
  /// to stand still for them.
  double predictedCollectiveWait = 0;
  /// What all ranks of all replicas send in one call of `step`, norms of
  /// gradients aside.
  Traffic sent = {};
  /// Replicas do something together in `evaluate`: all have to call it.
  bool evaluatesTogether = false;
  /// Printed by --timetable.
  const char *timetable = "";
  /// Printed by --plan.
  const char *planJson = "";
  /// What the files of a run name its plan by: programs that differ in what
  /// runs where, in which order or with which buffers have other ones.
  uint64_t planHash() const;

  /// What ranks need that are GPUs; null: they are CPUs.
  const DeviceProgram *device = nullptr;

  /// Its processes: a rank is a position.
  Mesh mesh() const {
    return {.pipe = static_cast<int64_t>(ranks.size()),
            .data = replicas,
            .map = processMap};
  }
  /// The micro-batches of one call of `step`, of all replicas.
  int64_t batchMicroBatches() const { return replicas * microBatches; }
  /// The number of a replica's micro-batch among those of `ofReplicas`: those
  /// of an update are consecutive, replica by replica.
  int64_t numberInBatch(int64_t microBatch, int64_t replica,
                        int64_t ofReplicas) const {
    const int64_t together = microBatches / updates;
    return (microBatch / together * ofReplicas + replica) * together +
           microBatch % together;
  }
};

/// The whole main() of a generated program: options, ranks as threads or MPI
/// processes, training, report. Returns the exit code.
int runProgram(int argc, char **argv, const Program &program);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_PROGRAM_H
