//===- Picture.h - What all drawings of a schedule share --------*- C++ -*-===//
//
// A simulated schedule together with what is derived from it for the eye:
// what each rank keeps over time, the transfers, the headline, colours.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_PICTURE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_PICTURE_H

#include "passes/schedules/Instruction.h"
#include "passes/schedules/Simulator.h"

#include <string>
#include <vector>

namespace pipewright::schedules {

struct MeasuredTrace;

struct Picture {
  /// The schedule as the user typed it: `interleaved:group=8`.
  std::string name;
  const Schedule &schedule;
  /// What the simulator says of this schedule with these costs and edges.
  const Simulation &simulation;
  const TaskCosts &costs;
  /// Empty: a chain.
  llvm::ArrayRef<StageEdge> edges = {};
  /// Times are plain numbers, not seconds.
  bool unitTimes = false;
  /// The model that was planned; empty without one.
  std::string model = {};
  /// What tasks take, for people: `F=1 B=2 I=1 W=1 of a rank's share`; empty
  /// where it was predicted of a model.
  std::string times = {};
  /// Copies of all ranks; one of them is drawn.
  int64_t replicas = 1;
  /// What a run of the same schedule took; only pages show it.
  const MeasuredTrace *measured = nullptr;
};

/// What a rank keeps for its backwards, as a step function: each value holds
/// from its time to the next one's.
struct MemoryCurve {
  struct Point {
    double time;
    int64_t value;
  };
  std::vector<Point> points;
  int64_t peak = 0;
};

/// What each rank keeps over time: bytes, or the number of (stage, micro-batch)
/// pairs where no stage has a stash size (`keepsBytes`).
std::vector<MemoryCurve> memoryCurves(const Picture &picture);
bool keepsBytes(const Picture &picture);

/// A message between two ranks, from the end of the task that made it until
/// it has arrived.
struct DrawnTransfer {
  TransferKind kind;
  int32_t fromRank, toRank, microBatch;
  double start, end;
};
std::vector<DrawnTransfer> transfersOf(const Picture &picture);

int64_t totalTasks(const Schedule &schedule);

/// `mlp.onnx: 1f1b`
std::string nameText(const Picture &picture);
/// `mlp.onnx: 1f1b`, or `3 schedules of mlp.onnx on 4 ranks, 8 micro-batches`
/// with what all of them share.
std::string titleText(llvm::ArrayRef<Picture> pictures);
/// `4 ranks, 1 stage per rank, 16 micro-batches`, `... in each of 2 replicas`
std::string sizesText(const Picture &picture);
/// `4 ranks, 8 micro-batches`: what all have; empty if they differ.
std::string commonSizesText(llvm::ArrayRef<Picture> pictures);
/// `step 57.0, span 48.0, bubble 15.8 %, peak 4 activations`; with works also
/// `exposed 1.2`, how much sooner the step would end without them.
std::string resultsText(const Picture &picture);

/// `1.25 ms`; plain numbers where times are no seconds.
std::string timeText(const Picture &picture, double time);
/// Of a value of a curve: `12.3 MB`, or `4 activations`, each of which is what
/// a rank's whole share of the model keeps of one micro-batch.
std::string memoryText(const Picture &picture, int64_t value);
/// `12.5`: at most `digits` digits after the point, no zeros at the end.
std::string numberText(double value, int digits = 2);

/// `#rrggbb` of the boxes of a task: the hue says the stage, the lightness the
/// kind. Alike on light and dark backgrounds.
std::string colorOf(const Schedule &schedule, TaskKind kind, int32_t stage);
/// Whether dark text is readable on boxes of this kind; else light text is.
bool hasDarkText(TaskKind kind);
/// The same without colours: the lightness says the kind.
std::string greyOf(TaskKind kind);
bool hasDarkTextInGrey(TaskKind kind);
/// `forward`, `input gradient` ...
const char *wordOf(TaskKind kind);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_PICTURE_H
