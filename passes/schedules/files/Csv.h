//===- Csv.h - Schedules in PyTorch's CSV format ----------------*- C++ -*-===//
//
// The files that torch.distributed.pipelining loads and dumps: line i is rank
// i, a cell is an action (`0F1`: forward of stage 0, micro-batch 1). In a
// `compute_only` file columns are time steps and empty cells idle ones; a
// `compute_comms` file lists sends and receives too and is run as it stands.
//
// The file says nothing but this order. Ranks are the lines, stages and
// micro-batches the numbers that occur, a stage is on the rank of its line, and
// one update per stage ends the step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSV_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSV_H

#include "passes/schedules/Instruction.h"
#include "passes/schedules/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace pipewright::schedules {

/// `(0SEND_F1;0RECV_B0)BATCH_P2P`: sends and receives that start together.
/// PyTorch's own files have no such cell.
inline constexpr llvm::StringLiteral csvGroupEnd = ")BATCH_P2P";

struct CsvSchedule {
  Schedule schedule;
  /// The lists of a `compute_comms` file; empty for others. Stage s feeds stage
  /// s+1, and edge s leads there; the file does not know sizes, so all are 0
  /// bytes.
  InstructionLists lists;
  /// What the file says that a schedule does not: how the letter B was read,
  /// which cells were left out.
  std::vector<std::string> notes;

  bool hasMessages() const { return !lists.empty(); }
};

/// Fails with `FILE.csv:LINE: cell N: ...` on text that is not such a file. The
/// result is well-formed cell by cell, but nothing more: whether every task is
/// there and the order can run is the checker's question.
///
/// In an old dialect B is the gradient of the input alone: such a file has both
/// B and W of one micro-batch, or `BW`, which is both in one.
///
/// A send blocks nothing until its WAIT_SEND cell, or the end of the list in
/// files without. A receive is posted where it stands and waited for before its
/// consumer, or before a younger one of the same link that is consumed earlier.
llvm::Expected<CsvSchedule> parseCsv(llvm::StringRef text,
                                     llvm::StringRef fileName);

/// A `compute_only` file; columns are the start times of tasks that all take
/// one slot. Fails on what the format cannot say: two copies, several updates,
/// recomputation, edges that skip stages, ranks without a stage; and on
/// forwards without backwards, which PyTorch refuses.
llvm::Expected<std::string>
writeComputeOnlyCsv(const Schedule &schedule,
                    llvm::ArrayRef<StageEdge> edges = {});

/// A `compute_comms` file. Fails on the same, on more than one tensor between
/// two stages, and on works. PyTorch 2.15 refuses a file without
/// WAIT_SEND cells; releases that do not know them read them as something else.
llvm::Expected<std::string>
writeComputeCommsCsv(const Schedule &schedule, const InstructionLists &lists,
                     llvm::ArrayRef<StageEdge> edges = {},
                     bool withSendWaits = true);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_CSV_H
