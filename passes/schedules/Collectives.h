//===- Collectives.h - What groups of ranks do together ---------*- C++ -*-===//
//
// Names and times of collectives, and the part of their proof that looks at one
// group at a time. The rules:
//
// (M1) All members of a group post the same collectives in the same order, with
//      the same sizes and roots. Nobody is missing, and nobody else posts any.
// (M2) Collectives of a rank run one after the other, of whatever group, on one
//      queue or stream; each is waited for once, in the order of the posts.
// (M3) In the proof that nobody waits in a circle a collective counts as one
//      vertex of all its members, together with transfers (Checker.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_COLLECTIVES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_COLLECTIVES_H

#include "passes/schedules/Checker.h"
#include "passes/schedules/Simulator.h"

namespace pipewright::schedules {

/// `ranks 0, 1 and 3`
std::string listOfRanks(const RankGroup &group);

/// `all-reduce of x0 over ranks 0, 1 and 3`
std::string nameOfCollective(const RankInstruction &instruction,
                             llvm::ArrayRef<RankGroup> groups,
                             NameOfTransfer nameOfTransfer);

/// (M1) and (M2): whatever can be seen without running the lists.
llvm::Error checkCollectives(const InstructionLists &lists,
                             llvm::ArrayRef<RankGroup> groups,
                             NameOfTransfer nameOfTransfer);

/// From the moment at which all members have come. Members exchange their parts
/// directly: each sends to all others over the slowest of the links between
/// them. Sums, and what is handed out, are an exchange each.
double secondsOfCollective(CollectiveKind kind, int64_t bytes,
                           const RankGroup &group, const TaskCosts &costs);
/// The same of a work on a group. Replicas are linked as ranks are that have no
/// costs of their own.
double secondsOfCollective(const Work &work, const TaskCosts &costs);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_COLLECTIVES_H
