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
#include "passes/schedules/Policy.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "passes/step/CostModel.h"

#include "tools/pipewright/OptionTable.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// How far a compilation goes when it prints IR instead of a program.
enum class Level {
  Program,
  Import,
  Staged,
  Unrolled,
  Scheduled,
  Allocated,
  Cpp,
};

struct CompileOptions {
  frontend::ImportOptions import;
  std::string output;
  const codegen::Target *target = nullptr;
  Precision precision = Precision::F32;
  /// What the number of classes is made a multiple of, from how many classes
  /// on; a multiple of 1 leaves it.
  int64_t vocabularyMultiple = 1, leastVocabulary = 4096;
  /// What the target decided.
  codegen::TargetDecisions decisions;
  int64_t ranks = 1, loops = 1, stages = 1, microBatches = 1;
  /// Not empty: the fastest of these is to be taken for `stages`.
  std::vector<int64_t> stageChoices;
  std::string schedule, balance, remat;
  /// The schedule, found.
  schedules::PolicyChoice policy;
  /// Whether both holders of a tied weight update it, or its owner for both.
  bool allReduceTiedWeights = true;
  /// Measured times by stage; empty unless the user gave a trace.
  std::vector<schedules::MeasuredTimes> taskTimes;
  nn::OptimizerChoice optimizer{nn::optimizers().front()};
  bool noDropout = false;
  /// Whether images lie in memory with their channels last.
  bool channelsLast = false;
  /// Whether the folder gets its executable.
  bool build = true;
  /// Whether files of others that are in the way are renamed.
  bool force = false;
  Level level = Level::Program;
  /// What plan.json repeats.
  llvm::json::Object given;
};

/// The options of all commands but those that only `schedules` and `check`
/// have, and those of drawings.
class OptionSet {
public:
  explicit OptionSet(const VerbCommands &commands);

  /// Checks everything that can be checked without the model. A `schedule`
  /// that is not empty stands in place of the user's.
  llvm::Expected<CompileOptions> check(llvm::StringRef schedule = "") const;

  /// What the commands ask for themselves.
  const OptionValues &given() const { return values; }

private:
  OptionValues values;
  llvm::cl::opt<std::string> model;
};

/// Whether a word of the command line is an option of `train`, and whether the
/// next word is its value.
bool isTrainOption(llvm::StringRef word, bool &takesNext);

/// A whole number from 1 to 2^20; the error names the option.
llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count);

/// One of some words; the error names the option and all of them.
llvm::Error readChoice(llvm::StringRef option, llvm::StringRef text,
                       llvm::ArrayRef<llvm::StringRef> choices);

/// `a, b or c`
std::string listOf(llvm::ArrayRef<llvm::StringRef> choices);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H
