//===- TargetRows.cpp - Options that the target decides -------------------===//
//
// What the program runs on, what only some targets have, and what a target
// chooses unless the user does.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/NamedMachines.h"
#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace pipewright;
using namespace pipewright::tool;
using namespace pipewright::tool::option;

//===----------------------------------------------------------------------===//
// What takes more than a line to read
//===----------------------------------------------------------------------===//

static const codegen::TargetOption *findOption(const codegen::Target &target,
                                               llvm::StringRef name) {
  for (const codegen::TargetOption &option : target.options())
    if (option.name == name)
      return &option;
  return nullptr;
}

/// The value of a target's own option.
static llvm::StringRef valueOf(Given given,
                               const codegen::TargetOption &option) {
  llvm::StringRef text = given[option.name];
  return text.empty() ? option.defaultValue : text;
}

static llvm::Error readTarget(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  auto target = codegen::findTarget(wordMeantBy(row.name, given[row.name]));
  if (!target)
    return fail("--target ", llvm::toString(target.takeError()));
  options.target = *target;
  options.pipelines.allocated.assignStreams = options.target->hasStreams();
  return llvm::Error::success();
}

/// What only some targets understand, and what the target decides by it.
static llvm::Error readTargetOptions(Given given, CompileOptions &options) {
  for (const codegen::Target *target : codegen::allTargets())
    for (const codegen::TargetOption &option : target->options()) {
      // A target that a plugin has brought later has none.
      auto has = [&](const codegen::Target &other) {
        return findOption(other, option.name) != nullptr;
      };
      if (!has(*options.target) && !given[option.name].empty())
        return fail("--", option.name, " expects --target ",
                    codegen::namesOfTargets(has));
      if (target == options.target)
        if (llvm::Error error =
                readChoice(option.name, valueOf(given, option), option.choices))
          return error;
    }
  options.decisions =
      options.target->decide(options.precision, [&](llvm::StringRef name) {
        return valueOf(given, *findOption(*options.target, name));
      });
  StagedPipelineOptions &staged = options.pipelines.staged;
  staged.epilogues = options.decisions.epilogues;
  staged.architecture = options.decisions.architecture;
  ImportPipelineOptions &import = options.pipelines.import;
  import.packAttention = options.decisions.packAttention;
  import.cachedAttention = options.decisions.cachedAttention;
  import.longestAttention = options.decisions.longestAttention;
  return llvm::Error::success();
}

/// The compute precision, which the target must have.
static llvm::Error readPrecision(const OptionSpelling &row, Given given,
                                 CompileOptions &options) {
  llvm::StringRef text = given[row.name];
  std::vector<std::pair<llvm::StringRef, Precision>> words;
  for (Precision precision : allPrecisions())
    words.push_back({nameOf(precision), precision});
  if (llvm::Error error =
          readWord<Precision>(row.name, text, words, options.precision))
    return error;
  auto computes = [&](const codegen::Target &target) {
    return llvm::is_contained(target.precisions(), options.precision);
  };
  if (!computes(*options.target))
    return fail("--precision ", text, " expects --target ",
                codegen::namesOfTargets(computes),
                options.precision == Precision::Tf32 ? ": only GPUs have TF32"
                                                     : "");
  options.pipelines.import.bf16 = options.precision == Precision::BF16;
  return readTargetOptions(given, options);
}

static llvm::Error readMachine(llvm::StringRef, llvm::StringRef text,
                               CompileOptions &options) {
  llvm::Expected<ChosenMachine> machine =
      chooseMachine(text, options.precision);
  if (!machine)
    return machine.takeError();
  options.machine = std::move(*machine);
  return llvm::Error::success();
}

/// `auto`, `none` or a number.
static llvm::Error readPadding(const OptionSpelling &row, Given given,
                               CompileOptions &options) {
  constexpr int64_t largest = 4096;
  llvm::StringRef text = given[row.name];
  ImportPipelineOptions &import = options.pipelines.import;
  if (text == "auto") {
    import.vocabularyMultiple = options.decisions.vocabularyMultiple;
  } else if (text != "none") {
    int64_t multiple = 0;
    if (text.getAsInteger(10, multiple) || multiple < 1 || multiple > largest)
      return fail("--pad-vocabulary expects auto, none or a number from 1 to ",
                  largest, ", but got '", text, "'");
    import.vocabularyMultiple = multiple;
    import.leastVocabulary = 1;
  }
  return llvm::Error::success();
}

static llvm::Error readLayout(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  std::string text = wordMeantBy(row.name, given[row.name]);
  options.pipelines.import.channelsLast =
      text == "auto" ? options.decisions.channelsLast.value_or(false)
                     : text == "nhwc";
  return readChoice(row.name, text, {"auto", "nchw", "nhwc"});
}

//===----------------------------------------------------------------------===//
// What plan.json repeats
//===----------------------------------------------------------------------===//

static Recorded recordPadding(const OptionSpelling &, Given,
                              const CompileOptions &options) {
  int64_t multiple = options.pipelines.import.vocabularyMultiple;
  if (multiple == 1)
    return std::nullopt;
  return multiple;
}

/// Which layout it is, unless neither the user nor the target minds.
static Recorded recordLayout(const OptionSpelling &row, Given given,
                             const CompileOptions &options) {
  if (given[row.name] == "auto" && !options.decisions.channelsLast)
    return std::nullopt;
  return options.pipelines.import.channelsLast ? "nhwc" : "nchw";
}

/// The value of an option of the target's own.
static Recorded recordTargetOption(const OptionSpelling &row, Given given,
                                   const CompileOptions &options) {
  const codegen::TargetOption *own = findOption(*options.target, row.name);
  if (!own)
    return std::nullopt;
  return valueOf(given, *own);
}

//===----------------------------------------------------------------------===//
// The rows
//===----------------------------------------------------------------------===//

std::vector<CompileRow> pipewright::tool::targetRows() {
  std::vector<CompileRow> rows = {
      {{"target", "NAME",
        "What the program runs on: " + codegen::namesOfTargets(),
        codegen::allTargets().front()->name().str()},
       recordText,
       readTarget},
      decidedAt(Level::Staged,
                {{"precision", "NAME",
                  "Compute precision: f32, tf32 (f32 of which matrix "
                  "products use 10 "
                  "bits; cuda) or bf16 (with f32 weights and sums)",
                  "f32"},
                 recordText,
                 readPrecision}),
      {{"machine", "NAME|FILE.json",
        "What times are predicted for, schedules chosen by them, and how much "
        "memory ranks have: " +
            namesOfMachines() +
            " (pipewright machine list), one of these with hosts of N ranks "
            "(h100xN), here (a core as it was measured), or what pipewright "
            "machine show -o has written elsewhere (default: here; an H100 "
            "for cuda)"},
       recordGiven,
       ifGiven(readMachine)},
      decidedAt(
          Level::Staged,
          {under(Heading::Expert,
                 {"pad-vocabulary", "N",
                  "Rows of zeros for the weight that makes the logits: auto "
                  "(to a "
                  "multiple of 64 from 4096 classes on, for cuda), none, or a "
                  "multiple "
                  "of N",
                  "auto"}),
           recordPadding, readPadding}),
      decidedAt(Level::Staged,
                {under(Heading::Expert, {"layout", "NAME",
                                         "How images lie in memory where there "
                                         "are convolutions: nchw, nhwc "
                                         "(channels last) or auto (nhwc for "
                                         "tensor cores: cuda in tf32 or "
                                         "bf16)",
                                         "auto"}),
                 recordLayout, readLayout})};
  // Two targets may have an option of the same name.
  std::set<llvm::StringRef> names;
  for (const codegen::Target *target : codegen::allTargets())
    for (const codegen::TargetOption &option : target->options())
      if (names.insert(option.name).second)
        rows.push_back(decidedAt(
            Level::Staged,
            {under(Heading::Expert, {option.name.str(), option.valueName.str(),
                                     option.help.str()}),
             recordTargetOption, nullptr}));
  return rows;
}
