//===- PlanFormat.h - The words of the JSON format --------------*- C++ -*-===//
//
// Shared by reader and writer, so that they cannot differ.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFORMAT_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFORMAT_H

#include "passes/schedules/Dependences.h"
#include "passes/schedules/Instruction.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <utility>
#include <vector>

namespace pipewright::schedules {

inline constexpr int64_t planVersion = 1;
inline constexpr char planPairSeparator = '&';
inline constexpr llvm::StringLiteral planRankWord = " rank ";
inline constexpr llvm::StringLiteral planBytesWord = " bytes ";

inline constexpr std::pair<WeightRule, llvm::StringLiteral> planWeightRules[] =
    {{WeightRule::Synchronous, "synchronous"},
     {WeightRule::Newest, "newest"},
     {WeightRule::DelayedByOne, "delayed-by-one"}};

/// The parts of "without": stages that have no such tasks.
inline constexpr std::pair<llvm::StringLiteral, bool StageTasks::*>
    planStageTasks[] = {{"forward", &StageTasks::forward},
                        {"backward", &StageTasks::backward},
                        {"update", &StageTasks::update}};

inline llvm::StringRef planWeightRule(WeightRule rule) {
  for (const auto &[known, word] : planWeightRules)
    if (known == rule)
      return word;
  return "?";
}

inline constexpr std::pair<InstructionKind, llvm::StringLiteral>
    planMessageWords[] = {{InstructionKind::PostSend, "send"},
                          {InstructionKind::PostReceive, "receive"},
                          {InstructionKind::WaitSend, "wait-send"},
                          {InstructionKind::WaitReceive, "wait-receive"}};

inline llvm::StringRef planMessageWord(InstructionKind kind) {
  for (const auto &[known, word] : planMessageWords)
    if (known == kind)
      return word;
  return "?";
}

inline constexpr llvm::StringLiteral planLetters = "FGX";

inline char planLetter(TransferKind kind) {
  return planLetters[static_cast<unsigned>(kind)];
}

/// What follows from an edge: who sends its messages to whom, and their size.
class PlanMessages {
public:
  PlanMessages(const Schedule &schedule, llvm::ArrayRef<StageEdge> given)
      : schedule(schedule),
        edges(given.empty()
                  ? linearEdges(schedule.stages, 0, schedule.copies)
                  : std::vector<StageEdge>(given.begin(), given.end())) {}

  /// The instruction of `rank`; none for a work, an edge that is not
  /// there, and a rank at neither end.
  std::optional<RankInstruction>
  find(InstructionKind kind, const Transfer &transfer, int32_t rank) const {
    if (transfer.kind == TransferKind::Work || transfer.edge < 0 ||
        static_cast<size_t>(transfer.edge) >= edges.size())
      return std::nullopt;
    const StageEdge &edge = edges[transfer.edge];
    int32_t from = schedule.rankOfStage[edge.from];
    int32_t to = schedule.rankOfStage[edge.to];
    if (transfer.kind == TransferKind::Gradient)
      std::swap(from, to);
    bool isSender =
        kind == InstructionKind::PostSend || kind == InstructionKind::WaitSend;
    if (from == to || (isSender ? from : to) != rank)
      return std::nullopt;
    return RankInstruction::message(kind, transfer, isSender ? to : from,
                                    edge.bytes);
  }

private:
  const Schedule &schedule;
  std::vector<StageEdge> edges;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFORMAT_H
