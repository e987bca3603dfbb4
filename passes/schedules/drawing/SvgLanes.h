//===- SvgLanes.h - The lanes of one schedule -------------------*- C++ -*-===//
//
// A part of an SVG file: one lane per rank, and what each rank keeps. Where
// time lies in the picture is decided by whoever puts such parts together.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGLANES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGLANES_H

#include "passes/schedules/drawing/Picture.h"
#include "passes/schedules/drawing/SvgElements.h"

namespace pipewright::schedules {

/// Where time lies from left to right, and what all lanes of a picture share.
struct SvgFrame {
  double left = 0, plotWidth = 0, right = 0, scale = 0;
  /// Whether there is room for words behind the lanes.
  bool hasNotes = true;
  bool isGrey = false;
  double laneHeight = 0, laneGap = 0, labelSize = 12;

  double x(double time) const { return left + time * scale; }
};

class SvgLanes {
public:
  explicit SvgLanes(const Picture &picture);

  // What there is to draw.
  const Picture &of() const { return picture; }
  double end() const { return lastEnd; }
  bool uses(TaskKind kind) const {
    return usedKinds & (1u << static_cast<unsigned>(kind));
  }
  bool hasPairs() const { return pairs; }
  bool hasBoxes() const { return boxes; }
  bool hasTransfers(TransferKind kind) const;
  size_t drawnRanks() const { return rows.size(); }
  /// Of the plot, so that the numbers of most tasks can be read.
  double wantedWidth() const { return lastEnd / typical * wantedBox; }
  double widthOfLabels(double size) const;
  double widthOfNotes(double size) const;

  /// Decides what can be drawn at this scale. The frame lives as long as this.
  void fit(const SvgFrame &frame);
  /// From top to bottom; both return where they end.
  double writeLanes(SvgElements &out, double top);
  double writeMemory(SvgElements &out, double top) const;
  double heightOfLanes() const {
    return rows.size() * (frame->laneHeight + frame->laneGap) - frame->laneGap;
  }

  /// The attributes of lines of messages, and the one that fills boxes.
  static const char *attributesOf(TransferKind kind);
  static std::string fill(const Picture &picture, bool isGrey, TaskKind kind,
                          int32_t stage);

private:
  double laneTop(size_t row) const {
    return lanesTop + row * (frame->laneHeight + frame->laneGap);
  }
  void findLoops();
  /// What stands behind the lanes, by row.
  std::vector<std::string> idleNotes() const;
  std::vector<std::string> memoryNotes() const;
  void writeIdle(SvgElements &out) const;
  void writeTransfers(SvgElements &out) const;
  /// The rank of a row, and a note behind it.
  void writeLabels(SvgElements &out, size_t row, double middle, double size,
                   const std::string &note) const;
  void writeBoxes(SvgElements &out, size_t row) const;
  void writeRuns(SvgElements &out, size_t row) const;
  void writeShared(SvgElements &out, size_t row) const;
  void writeCurve(SvgElements &out, const MemoryCurve &curve, double top,
                  double height, int64_t most) const;
  void box(SvgElements &out, const Task &task, const TaskTime &time, double top,
           double height) const;
  std::string tipOf(const Task &task, const TaskTime &time, int32_t rank) const;

  const Picture &picture;
  const Schedule &schedule;
  const SvgFrame *frame = nullptr;
  std::vector<DrawnTransfer> transfers;
  std::vector<MemoryCurve> curves;
  /// Drawn ranks, by row.
  std::vector<int32_t> rows;
  /// By stage, which of its rank's stages it is, from 0 for the first to 1 for
  /// the last.
  std::vector<double> loops;
  bool boxes = true, pairs = false;
  unsigned usedKinds = 0;
  double lastEnd = 0, lanesTop = 0;
  /// How long most tasks are at least, and how wide they should be.
  double typical = 1, wantedBox = 0;
  double numberSize = 0;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGLANES_H
