//===- Options.h - What the user asked for ----------------------*- C++ -*-===//
//
// The options that compile, plan and train share, checked: whoever gets a
// CompileOptions need not doubt a number in it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H

#include "codegen/target/Target.h"
#include "dialects/nn/OptimizerTable.h"
#include "frontends/common/Frontend.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/schedules/Policy.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "passes/step/CostModel.h"

#include "tools/common/Plugins.h"
#include "tools/pipewright/ChosenMachine.h"
#include "tools/pipewright/LevelText.h"
#include "tools/pipewright/OptionTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// What a compilation ends in: a program, or text of what becomes one.
enum class Emission {
  Program,
  /// One of the levels.
  Level,
  /// Host code.
  Cpp,
  /// Kernels as nn ops, as linalg on tensors, in the LLVM dialect, as PTX.
  Kernels,
  Linalg,
  Llvm,
  Ptx,
};

struct CompileOptions {
  frontend::ImportOptions import;
  /// What the levels are made with: most rows bind to one of these.
  PipelineOptions pipelines;
  std::string output;
  const codegen::Target *target = nullptr;
  Precision precision = Precision::F32;
  /// What the target decided.
  codegen::TargetDecisions decisions;
  int64_t loops = 1, microBatches = 1, replicas = 1;
  /// In which order processes are numbered; none: as the plan has it for the
  /// machine.
  std::optional<runtime::ProcessMap> processMap;
  runtime::Mesh mesh() const;
  /// The orders that differ on the machine, the usual one first.
  std::vector<runtime::ProcessMap> processMaps() const;
  /// The level of ZeRO.
  int64_t zero = 0;
  /// The bytes of a bucket of gradients; none: all of a stage at once.
  std::optional<int64_t> bucketSize;
  /// Whether the user chose it, against the one that text of a level has.
  bool choosesBucketSize = false;
  /// The highest level of ZeRO that makes a difference.
  int64_t highestZero() const {
    if (optimizer.row->granularity == nn::Granularity::Weight ||
        policy->updates(sizes()) > 1)
      return 0;
    const bool sharesMore = stageChoices.empty()
                                ? needsZeroBuffers(loops)
                                : !stageChoicesAboveZero1().empty();
    return sharesMore && !clipNorm ? 3 : 1;
  }
  /// Of the numbers of stages to choose from, those for which a level of ZeRO
  /// above 1 makes a difference.
  std::vector<int64_t> stageChoicesAboveZero1() const {
    std::vector<int64_t> choices;
    llvm::copy_if(stageChoices, std::back_inserter(choices),
                  [&](int64_t stages) {
                    return needsZeroBuffers(stages / pipelines.scheduled.ranks);
                  });
    return choices;
  }
  /// Whether a rank has more stages than it has room for their gradients and
  /// weights, if replicas share these.
  bool needsZeroBuffers(int64_t stagesOfRank) const {
    return stagesOfRank > pipelines.scheduled.zeroBuffers;
  }
  /// Whether the user chose how stages are cut.
  bool choosesBalance = false;
  /// Whether what is recomputed is to be chosen.
  bool choosesRemat = false;
  /// The share of its stashes that a rank may have on its host.
  double offload = 0;
  /// Where the schedule is to be chosen: the numbers of stages to choose from.
  std::vector<int64_t> stageChoices;
  /// The schedule, found.
  schedules::PolicyChoice policy;
  /// Where it was chosen: what it is.
  std::string chosen;
  /// Measured times by stage; empty unless the user gave a trace.
  std::vector<schedules::MeasuredTimes> taskTimes;
  /// Of which program these are, as far as the trace says.
  std::optional<schedules::TracedProgram> taskTimesOf;
  /// Measured times of the model's modules; empty unless --balance names some.
  std::vector<std::pair<std::string, double>> moduleTimes;
  nn::OptimizerChoice optimizer{nn::optimizers().front()};
  /// Whether the user chose it, against the one that text of a level has.
  bool choosesOptimizer = false;
  /// What predictions are for, where that is not the target's.
  std::optional<ChosenMachine> machine;
  const MachineModel &machineModel() const {
    return machine ? machine->model : target->machine(precision);
  }
  /// Whether its figures decide anything, and not predictions alone.
  bool decidesByMachine() const {
    return machineModel().isUneven() || (machine && offload > 0) ||
           (policy.policy && policy->plansWithTimes());
  }
  /// Whether stages are cut by what ops are predicted to take on it.
  bool cutsByMachine() const { return pipelines.staged.balance == "step"; }
  /// Whether drafts, too, compare schedules with a cut each.
  bool comparesSchedules = false;
  /// The most bytes that an arena may have, as the user allows.
  std::optional<int64_t> memoryLimit;
  /// The same of a rank, and with what a machine has that was named; none where
  /// neither says.
  std::optional<int64_t> limitOf(int64_t rank) const;
  /// Whether any rank has a limit.
  bool limitsMemory() const;
  /// Where ranks are alike, as if they had none.
  void dropMemoryLimits();
  /// The largest norm of all gradients; none: they are taken as they are.
  std::optional<double> clipNorm;
  /// Whether the folder gets its executable.
  bool build = true;
  /// Whether files of others that are in the way are renamed.
  bool force = false;
  Emission emission = Emission::Program;
  /// The level to print.
  Level level = Level::Import;
  bool printsLocations = false;
  /// Whether MLIR prints all modules behind each pass, and the times of passes.
  bool printsAfterAll = false, printsTimes = false;
  /// Pipelines of passes as text, each behind a level, in their order.
  std::vector<std::pair<Level, std::string>> passesAfter;
  /// The model, where it is text of a level.
  std::shared_ptr<LevelText> text;
  /// What plan.json repeats.
  llvm::json::Object given;

  /// What the schedule is asked for.
  schedules::ScheduleOptions sizes() const {
    schedules::ScheduleOptions sizes = policy.with(
        {pipelines.scheduled.ranks, pipelines.staged.stages, microBatches});
    sizes.offload = offload;
    return sizes;
  }
};

/// What plan.json repeats of an option, if anything.
using Recorded = std::optional<llvm::json::Value>;
using Record = std::function<Recorded(
    const OptionSpelling &, const OptionValues &, const CompileOptions &)>;

/// The text, be it empty.
Recorded recordText(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &options);
/// The text or texts, where there are any.
Recorded recordGiven(const OptionSpelling &row, const OptionValues &given,
                     const CompileOptions &options);
Recorded recordFlag(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &options);
/// Nothing: it does not change what is compiled, or plan.json has it elsewhere.
Recorded recordNothing(const OptionSpelling &row, const OptionValues &given,
                       const CompileOptions &options);

/// A row of a compilation; it cannot be made without saying what plan.json
/// repeats of it.
struct CompileRow {
  OptionSpelling spelling;
  Record record;
  ReadOption<CompileOptions> read;
  /// In plan.json; the name with underscores unless it says another.
  std::string key = {};
  /// The first level whose text has decided what the option says.
  std::optional<Level> decided = {};
};

inline CompileRow decidedAt(Level level, CompileRow row) {
  row.decided = level;
  return row;
}
/// The rows, where they say nothing themselves.
inline std::vector<CompileRow> decidedAt(Level level,
                                         std::vector<CompileRow> rows) {
  for (CompileRow &row : rows)
    if (!row.decided)
      row.decided = level;
  return rows;
}

/// The options of a model, in the order in which they are read. Plugins
/// are loaded before the first call.
const std::vector<CompileRow> &compileRows();

/// Those of them that say what stages there are.
std::vector<CompileRow> stageRows();
/// Those that say what the program runs on, and what is decided for
/// that.
std::vector<CompileRow> targetRows();
/// What a command does with its answer.
std::vector<CompileRow> outputRows();

/// Checks everything that can be checked without the model, or with its text
/// (null where it is none). Refuses options that say what the text has decided.
llvm::Expected<CompileOptions>
readCompileOptions(const OptionValues &given, std::shared_ptr<LevelText> text);

/// The passes of a pipeline as --pass-pipeline-after takes it; all passes have
/// been registered. The error is a line.
llvm::Error addPasses(llvm::StringRef pipeline, mlir::OpPassManager &pm);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H
