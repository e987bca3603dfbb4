//===- MemoryLimits.cpp - What ranks may have and need at least -----------===//

#include "tools/pipewright/MemoryLimits.h"

#include "codegen/plan/Plan.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "tools/pipewright/Compilation.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <limits>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::tool;

/// Of a level of ZeRO, for weights that replicas share in so many parts and for
/// ranks with so many stages.
static double leastCopiesOf(int64_t zero, double parts, double stages,
                            const CompileOptions &given) {
  const bool isRounded = given.precision == Precision::BF16;
  const auto states = static_cast<double>(given.optimizer.keptStates().size());
  // Where bf16 copies are read, a replica needs of f32 only its part. Weights
  // of a stage are whole in its tasks, gradients in its backwards.
  const double weights = zero >= 3
                             ? 1 / parts + (isRounded ? 0.5 : 1) / stages
                             : (zero >= 1 && isRounded ? 0.5 + 1 / parts : 1);
  const double gradients = zero >= 2 ? 1 / stages : 1;
  // Matrices lack a state that others have.
  return weights + gradients +
         (given.optimizer.takesMatrices() ? 1 : states) /
             (zero >= 1 ? parts : 1);
}

double pipewright::tool::leastCopies(const CompileOptions &given,
                                     double stagesOfRank) {
  const auto parts = static_cast<double>(given.replicas);
  // A level shares no more than those below it where ranks have few stages.
  double least = std::numeric_limits<double>::infinity();
  for (int64_t level = 0; level <= given.zero; ++level)
    least = std::min(least, leastCopiesOf(level, parts, stagesOfRank, given));
  return least;
}

/// The most stages that a rank may get.
static double mostStagesOfRank(const CompileOptions &options) {
  const int64_t ranks = options.pipelines.scheduled.ranks;
  int64_t stages = std::max<int64_t>(options.pipelines.staged.stages, ranks);
  for (int64_t choice : options.stageChoices)
    stages = std::max(stages, choice);
  return static_cast<double>(stages) / static_cast<double>(ranks);
}

/// What weights, gradients and states take at least, on all ranks of a replica.
static int64_t leastFixedBytes(ModuleOp imported,
                               const CompileOptions &options) {
  llvm::SmallPtrSet<Attribute, 16> read;
  imported.walk(
      [&](nn::ParameterOp op) { read.insert(op.getWeightAttr().getAttr()); });
  int64_t parameters = 0;
  for (auto weight : imported.getOps<nn::WeightOp>())
    if (weight.getRole() == nn::WeightRole::Parameter &&
        read.contains(weight.getSymNameAttr()))
      parameters += pipe::byteSize(weight.getTensorType());
  return static_cast<int64_t>(leastCopies(options, mostStagesOfRank(options)) *
                              static_cast<double>(parameters));
}

int64_t pipewright::tool::mostBytesOf(const CompileOptions &options) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < options.pipelines.scheduled.ranks; ++rank)
    most = std::max(most, options.limitOf(rank).value_or(
                              std::numeric_limits<int64_t>::max()));
  return most;
}

Refusal Refusal::needsMore(int64_t bytes, const CompileOptions &options) {
  return {tool::needsMore("a rank needs at least", bytes, mostBytesOf(options),
                          options),
          bytes};
}

std::string pipewright::tool::tellNeed(StringRef subject, int64_t bytes,
                                       int64_t limit,
                                       const CompileOptions &options) {
  auto text = [&](int64_t number) {
    return codegen::formatBytes(bytes) == codegen::formatBytes(limit)
               ? std::to_string(number) + " B"
               : codegen::formatBytes(number);
  };
  return subject.str() + " " + text(bytes) + ", but " +
         (options.memoryLimit == limit ? "--memory-limit is "
                                       : "--machine gives it ") +
         text(limit);
}

std::string pipewright::tool::needsMore(StringRef subject, int64_t bytes,
                                        int64_t limit,
                                        const CompileOptions &options) {
  std::string ways = "more --ranks, ";
  if (!options.choosesRemat)
    ways += "--remat auto, ";
  if (options.pipelines.staged.balance != "memory")
    ways += "--balance memory, ";
  return tellNeed(subject, bytes, limit, options) + ": " + ways +
         kNeedLess.str();
}

Refusal pipewright::tool::whyNothingFits(ModuleOp imported,
                                         const CompileOptions &options) {
  // Ranks of a replica have all of it together.
  int64_t bytes =
      leastFixedBytes(imported, options) / options.pipelines.scheduled.ranks;
  imported.walk([&](Operation *op) {
    if (isa<nn::MatmulOp, nn::ConvOp>(op))
      bytes = std::max(bytes, pipe::byteSize(cast<RankedTensorType>(
                                  op->getResult(0).getType())));
  });
  return bytes > mostBytesOf(options) ? Refusal::needsMore(bytes, options)
                                      : Refusal();
}

bool pipewright::tool::isBeyondLimit(pipe::ArenaOp arena,
                                     const CompileOptions &options) {
  std::optional<int64_t> limit =
      options.limitOf(static_cast<int64_t>(arena.getRank()));
  return limit && static_cast<int64_t>(arena.getBytes()) > *limit;
}
