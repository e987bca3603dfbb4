//===- CsvActions.h - What a cell of PyTorch's CSV says ---------*- C++ -*-===//
//
// Internal to the reader of CSV files.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSVACTIONS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSVACTIONS_H

#include "passes/schedules/Instruction.h"
#include "passes/schedules/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace pipewright::schedules::csv {

enum class ActionKind : uint8_t {
  Forward,
  /// B: both gradients, or in the old dialect that of the input.
  Backward,
  /// BW, of the old dialect only: both gradients.
  BothGradients,
  InputGradient,
  WeightGradient,
  SendForward,
  ReceiveForward,
  SendGradient,
  ReceiveGradient,
  WaitSendForward,
  WaitSendGradient,
  Ignored,
};

/// What a cell may say. Sharded parameters are not part of a schedule.
struct Word {
  llvm::StringLiteral text;
  ActionKind kind;
  bool hasMicroBatch;
};

struct Action {
  ActionKind kind = ActionKind::Ignored;
  bool overlapsNext = false, groupedWithNext = false;
  int32_t stage = 0;
  int32_t microBatch = 0;
  int32_t cell = 0;
  const Word *word = nullptr;

  bool isTask() const { return kind <= ActionKind::WeightGradient; }
  bool isSend() const {
    return kind == ActionKind::SendForward || kind == ActionKind::SendGradient;
  }
  bool isReceive() const {
    return kind == ActionKind::ReceiveForward ||
           kind == ActionKind::ReceiveGradient;
  }
  bool isWait() const {
    return kind == ActionKind::WaitSendForward ||
           kind == ActionKind::WaitSendGradient;
  }
  bool isPost() const { return isSend() || isReceive(); }
  bool isMessage() const { return isSend() || isReceive() || isWait(); }

  std::string name() const {
    return std::to_string(stage) + word->text.str() +
           std::to_string(microBatch);
  }
};

/// The list of one rank: its cells, with the waits that PyTorch's runtime does
/// without a cell. The order of the rank has the tasks of `actions`, and then
/// its updates, which no cell says.
std::vector<RankInstruction> instructionsOf(const Schedule &schedule,
                                            int32_t rank,
                                            llvm::ArrayRef<Action> actions);

} // namespace pipewright::schedules::csv

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSVACTIONS_H
