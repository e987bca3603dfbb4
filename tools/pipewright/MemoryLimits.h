//===- MemoryLimits.h - What ranks may have and need at least ---*- C++ -*-===//
//
// The limits of ranks, of --memory-limit and of the machine, and bounds of what
// a plan needs before there is one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_MEMORYLIMITS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_MEMORYLIMITS_H

#include "tools/pipewright/Options.h"

#include <optional>
#include <string>

namespace pipewright::tool {

/// Why there is no plan; where that is memory, the bytes that a rank needs at
/// least.
struct Refusal {
  std::string why;
  std::optional<int64_t> bytes;

  static Refusal needsMore(int64_t bytes, const CompileOptions &options);
  bool isOne() const { return !why.empty(); }
};

/// Whether an arena has more bytes than its rank may have.
bool isBeyondLimit(pipe::ArenaOp arena, const CompileOptions &options);

/// Why no plan fits whatever the schedule, from what weights, gradients and
/// states take on all ranks, and the largest result of a product on one of
/// them; none where that does not say so. `imported` is at the import level.
Refusal whyNothingFits(mlir::ModuleOp imported, const CompileOptions &options);

/// What a byte of a parameter in f32 takes at least on each rank that has it,
/// with its gradient and its states: on average, of ranks with so many stages.
double leastCopies(const CompileOptions &given, double stagesOfRank);

/// The limit of the rank that may have most, in bytes.
int64_t mostBytesOf(const CompileOptions &options);

/// That `subject` needs so many bytes, more than `limit`, one of the options.
std::string tellNeed(llvm::StringRef subject, int64_t bytes, int64_t limit,
                     const CompileOptions &options);

/// The same, and which options that were not given may need less.
std::string needsMore(llvm::StringRef subject, int64_t bytes, int64_t limit,
                      const CompileOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_MEMORYLIMITS_H
