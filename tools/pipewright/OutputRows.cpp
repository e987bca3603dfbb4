//===- OutputRows.cpp - What a command does with its answer ---------------===//

#include "support/Text.h"
#include "tools/common/Registration.h"
#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::tool {

using namespace option;
using enum OptionSpelling::Kind;
using enum Heading;

/// What --emit takes besides levels.
static constexpr std::pair<llvm::StringRef, Emission> emissions[] = {
    {"cpp", Emission::Cpp},
    {"kernels", Emission::Kernels},
    {"linalg", Emission::Linalg},
    {"llvm", Emission::Llvm}};

/// A level of those that are not before the model's own.
static llvm::Error readLevel(llvm::StringRef option, llvm::StringRef name,
                             CompileOptions &options, Level &level) {
  if (llvm::Error error = readWord<Level>(option, name, namesOfLevels(), level))
    return error;
  if (!options.text || options.text->level <= level)
    return llvm::Error::success();
  return fail("--", option, " ", name, ": ",
              text::printable(options.text->path), " is of the ",
              nameOf(options.text->level), " level, which comes behind it");
}

/// Levels, other steps, and what the targets' kernels are compiled to.
static std::vector<llvm::StringRef> emissionNames() {
  std::vector<llvm::StringRef> names;
  llvm::append_range(names, choicesOf<Level>(namesOfLevels()));
  llvm::append_range(names, choicesOf<Emission>(emissions));
  for (const codegen::Target *target : codegen::allTargets())
    if (!target->assembly().empty())
      names.push_back(target->assembly());
  return names;
}

/// Whether a target brings kernels to the LLVM dialect.
static bool lowersKernels(const codegen::Target &target) {
  mlir::OpPassManager passes(mlir::ModuleOp::getOperationName());
  target.buildKernelLowering(passes);
  return !passes.empty();
}

static llvm::Error readEmission(llvm::StringRef name, llvm::StringRef text,
                                CompileOptions &options) {
  std::string word = wordMeantBy(name, text);
  if (llvm::is_contained(choicesOf<Level>(namesOfLevels()), word)) {
    options.emission = Emission::Level;
    return readLevel(name, word, options, options.level);
  }
  if (llvm::is_contained(choicesOf<Emission>(emissions), word)) {
    if (llvm::Error error =
            readWord<Emission>(name, word, emissions, options.emission))
      return error;
    if (options.emission == Emission::Llvm && !lowersKernels(*options.target))
      return fail("--", name, " ", word, " expects --target ",
                  codegen::namesOfTargets(lowersKernels));
    return llvm::Error::success();
  }
  if (llvm::Error error = readChoice(name, text, emissionNames()))
    return error;
  options.emission = Emission::Ptx;
  auto has = [&](const codegen::Target &target) {
    return target.assembly() == word;
  };
  if (!has(*options.target))
    return fail("--", name, " ", word, " expects --target ",
                codegen::namesOfTargets(has));
  return llvm::Error::success();
}

/// LEVEL:PIPELINE, which is read here once so that mistakes are told before
/// the work.
static llvm::Error readPasses(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  if (given.all(row.name).empty())
    return llvm::Error::success();
  registerAllPasses();
  for (llvm::StringRef each : given.all(row.name)) {
    auto [level, pipeline] = each.split(':');
    if (pipeline.trim().empty())
      return fail("--", row.name, " expects ", row.valueName, ", but got '",
                  text::shortened(each), "'");
    auto &[behind, passes] = options.passesAfter.emplace_back();
    if (llvm::Error error = readLevel(row.name, level.trim(), options, behind))
      return error;
    passes = pipeline.trim().str();
    mlir::OpPassManager none(mlir::ModuleOp::getOperationName());
    if (llvm::Error error = addPasses(passes, none))
      return fail("--", row.name, " ", text::shortened(each), ": ",
                  llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

std::vector<CompileRow> outputRows() {
  return {
      {refusedBy(
           Train,
           {"o", "OUT",
            "compile: the folder to write (with --emit, a file), one with the "
            "model's name unless given; plan: a file for what it prints; "
            "profile, preflight: the FILE.json to write"}),
       recordNothing, file(&CompileOptions::output, "a file or a folder")},
      {refusedBy(
           Models & ~Compile,
           {"emit", "LEVEL",
            "Print a level, host code or a step of the kernels instead: " +
                text::listOf(emissionNames())}),
       recordNothing, ifGiven(readEmission)},
      {under(Heading::Expert,
             {.name = "pass-pipeline-after",
              .valueName = "LEVEL:PIPELINE",
              .help = "Run passes behind a level, as pipewright-opt's "
                      "--pass-pipeline takes them, and verify it again; passes "
                      "of plugins, too (may be given again)",
              .kind = List}),
       recordGiven, readPasses},
      {under(Heading::Expert, {.name = "locations",
                               .help = "With --emit: print where each op comes "
                                       "from, node and module",
                               .kind = Flag,
                               .verbs = Compile}),
       recordNothing, flag(&CompileOptions::printsLocations)},
      {under(Heading::Expert,
             {.name = "mlir-print-ir-after-all",
              .help = "Print the module behind each pass, to the error output",
              .kind = Flag}),
       recordNothing, flag(&CompileOptions::printsAfterAll)},
      {under(Heading::Expert,
             {.name = "mlir-timing",
              .help = "Print what each pass took, to the error output",
              .kind = Flag}),
       recordNothing, flag(&CompileOptions::printsTimes)},
      {under(Heading::Expert,
             {.name = "no-build",
              .help = "Write the folder without building its executable",
              .kind = Flag,
              .verbs = Compile}),
       recordNothing, flagAgainst(&CompileOptions::build)},
      {{.name = "force",
        .help =
            "Keep files in OUT that are in the way, as NAME.kept, instead of "
            "refusing; nothing is deleted that pipewright did not write",
        .kind = Flag,
        .verbs = Compile},
       recordNothing,
       flag(&CompileOptions::force)},
      // Plugins are loaded before the command line is read.
      {under(Heading::Expert,
             {.name = kPluginOption.str(),
              .valueName = "FILE",
              .help = "Shared object with more schedules, targets or passes",
              .kind = List,
              .verbs = All}),
       recordNothing, nullptr}};
}

} // namespace pipewright::tool
