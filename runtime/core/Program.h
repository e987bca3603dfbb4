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
#include "runtime/core/Table.h"

#include <cstdint>
#include <utility>

namespace pipewright::runtime {

class Rank;
struct DeviceProgram;

enum class Role { Parameter, State, Constant };

/// A weight as one rank holds it.
struct WeightInfo {
  /// Its name in weights.safetensors.
  const char *name = "";
  Buffer buffer;
  /// Dimensions joined by 'x', such as "768x3072"; "" is a scalar.
  const char *shape = "";
  Role role = Role::Parameter;
  /// Saved from here; the replicas of a tied weight on other ranks are not.
  bool owner = true;
  /// Where a step collects the gradient (sum over micro-batches); whole when
  /// the rank's first "U" task begins. Zero bytes: none.
  Buffer gradient = {};
  ElementType type = ElementType::F32;
  /// Filters [o, c, kh, kw] that lie as [o, kh, kw, c] in memory, and so do
  /// their gradients; `shape` and all files stay as the model has them.
  bool channelsLast = false;
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
  /// Of a scalar that is no data: the labels that an update trains on, divided
  /// by its micro-batches; 1 where there are none.
  LabelCount counted = {};

  bool isData() const { return counted.input < 0; }
};

/// An output of the model, as one micro-batch has it.
struct OutputInfo {
  const char *name = "";
  ElementType type = ElementType::F32;
  Table<int64_t> shape;
};

/// Room for weights that an update has replaced while tasks still read them.
struct OldWeights {
  /// All weights of a stage that tasks read, in their newest version.
  Buffer newest;
  /// Holds the same weights before the first step.
  Buffer old;
};

/// f32 weights of a stage and the bf16 copies that its tasks read, in the same
/// order. Whoever writes the first writes the second: loading weights, the
/// update task.
struct LoweredWeights {
  Buffer master;
  Buffer lowered;
};

/// One line of the memory report: what the planned bytes are for.
struct MemoryLine {
  const char *what = "";
  int64_t bytes = 0;
};

struct RankProgram {
  int64_t arenaBytes = 0;
  Table<WeightInfo> weights;
  /// The inputs (by number) that this rank loads.
  Table<int64_t> inputs = {};
  /// Of bf16 programs; old versions are of the bf16 copies then.
  Table<LoweredWeights> loweredWeights = {};
  Table<OldWeights> oldWeights = {};
  /// One step over all micro-batches.
  void (*step)(Rank &) = nullptr;
  /// Forward only, all micro-batches; reports the loss, stores the outputs.
  /// Null: the program was compiled without evaluation.
  void (*evaluate)(Rank &) = nullptr;
  /// Creates library primitives and scratch; called once. May be null.
  void (*setUp)(Rank &) = nullptr;
  Table<MemoryLine> memory = {};
  double predictedStepSeconds = 0;
  // What follows is for ranks that are GPUs.
  /// The ranks that this one sends to in `step` or `evaluate`, ascending: each
  /// is a directed link with a stream of its own.
  Table<int64_t> sendsTo = {};
  /// Events are numbered from 0 to this, in `step` and in `evaluate`.
  int64_t events = 0;
  int64_t evaluateEvents = 0;
};

/// Those that change while training are floats for kernels (Rank::hyper);
/// the rest was compiled in.
struct HyperParameters {
  float learningRate = 0.01f;
  /// 0 where the optimizer has none.
  float beta1 = 0;
  float beta2 = 0;
  /// What a summed gradient is multiplied by: 1 / microBatches, unless the
  /// loss gradient was scaled already.
  float gradientScale = 1;
};

struct Program {
  const char *name = "model";
  int64_t microBatches = 1;
  int64_t microBatchSize = 1;
  /// Of the weights, in one call of `step`; each takes its share of the
  /// micro-batches, in order.
  int64_t updates = 1;
  const char *optimizer = "sgd";
  HyperParameters defaults;
  Table<InputInfo> inputs;
  Table<OutputInfo> outputs;
  Table<RankProgram> ranks;
  /// Printed by --timetable.
  const char *timetable = "";
  /// Printed by --plan.
  const char *planJson = "";
  /// What ranks need that are GPUs; null: they are CPUs.
  const DeviceProgram *device = nullptr;
};

/// The whole main() of a generated program: options, ranks as threads or MPI
/// processes, training, report. Returns the exit code.
int runProgram(int argc, char **argv, const Program &program);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_PROGRAM_H
