//===- Options.h - What the user asked for ----------------------*- C++ -*-===//
//
// The options that compile, plan and train share, checked: whoever gets a
// CompileOptions need not doubt a number in it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H

#include "codegen/host/Target.h"
#include "frontends/onnx/Importer.h"
#include "passes/planning/CostModel.h"
#include "passes/schedules/files/ChromeTrace.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"
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
  EmitC,
  Cpp,
};

struct OptimizerChoice {
  std::string name;
  /// Under the names of torch.optim; defaults filled in.
  std::vector<std::pair<std::string, double>> numbers;
  bool nesterov = false;
};

struct CompileOptions {
  frontend::ImportOptions import;
  std::string output;
  codegen::Target target = codegen::Target::Cpu;
  Precision precision = Precision::F32;
  /// What the number of classes is made a multiple of, from how many classes
  /// on; a multiple of 1 leaves it.
  int64_t vocabularyMultiple = 1, leastVocabulary = 4096;
  /// auto, none, bias or all; empty for CPUs.
  std::string epilogues;
  /// Whether attention reads by strides (nn-pack-attention); never for CPUs.
  bool packAttention = false;
  /// The GPU that decisions are made for: 90 is sm_90.
  int64_t architecture = 90;
  int64_t ranks = 1, stages = 1, microBatches = 1;
  /// Not empty: the fastest of these is to be taken for `stages`.
  std::vector<int64_t> stageChoices;
  std::string schedule, balance, remat;
  /// Whether both holders of a tied weight update it, or its owner for both.
  bool allReduceTiedWeights = true;
  /// Measured times by stage; empty unless the user gave a trace.
  std::vector<schedules::MeasuredTimes> taskTimes;
  OptimizerChoice optimizer;
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

/// The command-line options, registered for some subcommands.
class OptionSet {
public:
  explicit OptionSet(llvm::ArrayRef<llvm::cl::SubCommand *> commands);
  ~OptionSet();

  /// Checks everything that can be checked without the model. A `schedule`
  /// that is not empty stands in place of the user's.
  llvm::Expected<CompileOptions> check(llvm::StringRef schedule = "") const;

  struct Storage;

private:
  std::unique_ptr<Storage> storage;
};

/// Whether a word of the command line is one of our options, and whether the
/// next word is its value.
bool isCompileOption(llvm::StringRef word, bool &takesNext);

/// A whole number from 1 to 2^20; the error names the option.
llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count);

/// `sgd,lr=0.1,momentum=0.9`
llvm::Expected<OptimizerChoice> parseOptimizer(llvm::StringRef text);

llvm::cl::OptionCategory &compileCategory();

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONS_H
