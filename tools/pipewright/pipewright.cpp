//===- pipewright.cpp - The command line ----------------------------------===//
//
// Subcommands and nothing else: options are in Options.cpp, what is done with
// them in Compile.cpp.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Interruption.h"
#include "codegen/package/PartialFolder.h"
#include "codegen/package/RunTool.h"
#include "runtime/core/ExitCode.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/common/Plugins.h"
#include "tools/pipewright/AutopsyCommand.h"
#include "tools/pipewright/Check.h"
#include "tools/pipewright/CheckpointCommand.h"
#include "tools/pipewright/CommandWords.h"
#include "tools/pipewright/Compile.h"
#include "tools/pipewright/ConfigurationSearch.h"
#include "tools/pipewright/EstimateCommand.h"
#include "tools/pipewright/ExportCommand.h"
#include "tools/pipewright/Help.h"
#include "tools/pipewright/LevelText.h"
#include "tools/pipewright/MachineCommand.h"
#include "tools/pipewright/Messages.h"
#include "tools/pipewright/OpsCommand.h"
#include "tools/pipewright/Options.h"
#include "tools/pipewright/OutputFile.h"
#include "tools/pipewright/Preflight.h"
#include "tools/pipewright/Profile.h"
#include "tools/pipewright/Schedules.h"
#include "tools/pipewright/Tuning.h"
#include "tools/pipewright/Version.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

#include <csignal>
#include <memory>
#include <optional>

using namespace pipewright;
namespace cl = llvm::cl;

using tool::fail;

static int exitCode(llvm::Error error) {
  return error ? fail(std::move(error)) : 0;
}

/// Compiles to a temporary folder and runs what came out.
static int trainModel(tool::CompileOptions options,
                      std::vector<std::string> programArguments) {
  auto trained = tool::TrainedModel::prepare(options.import, programArguments);
  if (!trained)
    return fail("--save: " + llvm::toString(trained.takeError()));
  auto folder = codegen::PartialFolder::createTemporary("pipewright-train-");
  if (!folder)
    return fail(folder.takeError());
  options.output = folder->pathOf("program");
  if (int code = tool::compileModel(options, /*isTemporary=*/true))
    return code;
  // The folder goes away; what was learned must not go with it, nor why it
  // failed. A later --save or --flight of the user's own wins.
  std::vector<std::string> command = {options.output + "/train", "--save",
                                      "trained.safetensors", "--flight", "."};
  llvm::append_range(command, programArguments);
  llvm::Expected<int> code = codegen::runInOurPlace(command);
  if (!code)
    return fail(llvm::toString(code.takeError()));
  if (*code != runtime::Done && *code != runtime::NotKept)
    return *code == runtime::ResumeMe || *code == runtime::Disagree ? *code : 1;
  const int written = exitCode(trained->write());
  return written ? written : *code;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

namespace {

/// The commands and their options. Plugins are loaded before it is made.
class CommandLine {
public:
  /// Reads the words behind the program's name. What only asks for help is
  /// answered, and so is a mistake: then there is an exit code.
  std::optional<int> parse(llvm::ArrayRef<llvm::StringRef> words);
  /// Does what the command says; returns the exit code.
  int run();

private:
  std::vector<tool::OptionSpelling> optionsOf(tool::Verb verb) const;
  cl::SubCommand &registered(tool::Verb verb) const;
  int runPlan(const tool::DrawOptions &drawings);
  int runSearch(const tool::SearchOptions &search,
                const tool::PlanOptions &planning,
                const tool::DrawOptions &drawings);
  int runTrain();
  int comparePlans(llvm::ArrayRef<std::string> schedules,
                   const tool::DrawOptions &drawings);
  int compareWorkers(int64_t workers, const tool::DrawOptions &drawings);
  /// The options of a model.
  llvm::Expected<tool::CompileOptions> readOptions();
  /// The same, with what a search has found where one is asked for.
  llvm::Expected<tool::CompileOptions> readBestOptions();

  /// As LLVM knows them.
  std::vector<std::unique_ptr<cl::SubCommand>> subcommands;
  tool::VerbCommands commands = [this] {
    tool::VerbCommands all;
    for (const tool::Command &command : tool::allCommands()) {
      subcommands.push_back(std::make_unique<cl::SubCommand>(command.name));
      all.push_back({command.verb, subcommands.back().get()});
    }
    return all;
  }();
  tool::OptionValues given{tool::compileRows(), commands, tool::Models};
  tool::OptionValues givenToSearch{tool::searchRows(), commands,
                                   tool::Models & ~tool::Profile &
                                       ~tool::Preflight};
  tool::OptionValues givenToPlan{tool::planRows(), commands, tool::Plan};
  tool::OptionValues givenToDraw{tool::drawRows(), commands,
                                 tool::Plan | tool::Schedules | tool::Check};
  tool::OptionValues givenToList{tool::listRows(), commands, tool::Schedules};
  tool::OptionValues givenToCheck{tool::checkRows(), commands, tool::Check};
  tool::OptionValues givenToMachine{tool::machineRows(), commands,
                                    tool::Machine};
  tool::OptionValues givenToCheckpoint{tool::checkpointRows(), commands,
                                       tool::Checkpoint};
  tool::OptionValues givenToAutopsy{tool::autopsyRows(), commands,
                                    tool::Autopsy};
  tool::OptionValues givenToEstimate{tool::estimateRows(), commands,
                                     tool::Estimate};
  tool::OptionValues givenToOps{tool::opsRows(), commands, tool::Ops};
  tool::OptionValues givenToExport{tool::exportRows(), commands, tool::Export};
  tool::Verb verb = tool::Compile;
  /// The words after `train` or `preflight` that its program gets.
  std::vector<std::string> programArguments;
};

} // namespace

std::vector<tool::OptionSpelling>
CommandLine::optionsOf(tool::Verb verb) const {
  std::vector<tool::OptionSpelling> all;
  for (const tool::OptionValues *table :
       {&given, &givenToSearch, &givenToPlan, &givenToDraw, &givenToList,
        &givenToCheck, &givenToEstimate, &givenToMachine, &givenToCheckpoint,
        &givenToOps, &givenToAutopsy, &givenToExport})
    llvm::append_range(all, table->of(verb));
  return all;
}

cl::SubCommand &CommandLine::registered(tool::Verb verb) const {
  for (const auto &[each, subcommand] : commands)
    if (each == verb)
      return *subcommand;
  llvm_unreachable("every command is registered");
}

std::optional<int> CommandLine::parse(llvm::ArrayRef<llvm::StringRef> words) {
  auto read = tool::readCommandWords(
      words, [&](tool::Verb verb) { return optionsOf(verb); },
      [&](tool::Verb verb, llvm::StringRef name) {
        return cl::getRegisteredOptions(registered(verb)).contains(name);
      });
  if (!read)
    return exitCode(read.takeError());
  if (read->asksVersion) {
    llvm::outs() << tool::versionText();
    return 0;
  }
  if (read->asksHelp) {
    if (const tool::Command *command = read->command)
      tool::printHelp(llvm::outs(), *command, optionsOf(command->verb),
                      read->asksAllHelp);
    else
      tool::printHelp(llvm::outs());
    return 0;
  }
  if (!read->command)
    return tool::fail("expects a command: " + tool::namesOfCommands() +
                      " (see pipewright --help)");
  verb = read->command->verb;
  programArguments = std::move(read->programs);
  std::string name = read->command->name.str();
  std::vector<const char *> ours = {"pipewright", name.c_str()};
  for (const std::string &word : read->ours)
    ours.push_back(word.c_str());
  cl::ParseCommandLineOptions(ours.size(), ours.data());
  return std::nullopt;
}

/// Does what a command says whose options are of one table.
template <class Options, class Run>
static int runWith(const std::vector<tool::OptionRow<Options>> &rows,
                   const tool::OptionValues &given, Run run) {
  auto options = tool::readOptions<Options>(rows, given);
  return exitCode(options ? run(std::move(*options)) : options.takeError());
}

int CommandLine::run() {
  auto drawings =
      tool::readOptions<tool::DrawOptions>(tool::drawRows(), givenToDraw);
  if (!drawings)
    return fail(llvm::toString(drawings.takeError()));
  switch (verb) {
  case tool::Schedules:
    return runWith(tool::listRows(), givenToList, [&](const auto &options) {
      return tool::runSchedules(options, *drawings);
    });
  case tool::Check:
    return runWith(tool::checkRows(), givenToCheck, [&](const auto &options) {
      return tool::checkFile(options, *drawings);
    });
  case tool::Machine:
    return runWith(tool::machineRows(), givenToMachine, tool::runMachine);
  case tool::Estimate:
    return runWith(tool::estimateRows(), givenToEstimate,
                   [](const auto &options) {
                     tool::printEstimate(options, llvm::outs());
                     return llvm::Error::success();
                   });
  case tool::Checkpoint:
    return runWith(tool::checkpointRows(), givenToCheckpoint,
                   tool::runCheckpoint);
  case tool::Autopsy:
    return runWith(tool::autopsyRows(), givenToAutopsy, tool::runAutopsy);
  case tool::Ops:
    return runWith(tool::opsRows(), givenToOps, [](const auto &options) {
      tool::printOps(options);
      return llvm::Error::success();
    });
  case tool::Export:
    return runWith(tool::exportRows(), givenToExport, tool::exportModel);
  case tool::Plan:
    return runPlan(*drawings);
  case tool::Train:
    return runTrain();
  case tool::Profile:
    codegen::handleInterruption();
    return exitCode(tool::profileModel(given));
  case tool::Preflight: {
    codegen::handleInterruption();
    auto code = tool::runPreflight(given, programArguments);
    return code ? *code : fail(code.takeError());
  }
  default:
    break;
  }
  auto options = readBestOptions();
  if (!options)
    return fail(options.takeError());
  codegen::handleInterruption();
  return tool::compileModel(*options);
}

llvm::Expected<tool::CompileOptions> CommandLine::readOptions() {
  auto text = tool::readLevelText(given["model"]);
  if (!text)
    return text.takeError();
  return tool::readCompileOptions(given, std::move(*text));
}

llvm::Expected<tool::CompileOptions> CommandLine::readBestOptions() {
  auto search = tool::readSearchOptions(givenToSearch, given);
  if (!search)
    return search.takeError();
  if (!search->isWanted)
    return search->workers == 0
               ? readOptions()
               : tool::option::fail("--workers goes with plan, or with "
                                    "--search");
  tool::ConfigurationSearch configurations(given, *search);
  if (llvm::Error error = configurations.run())
    return std::move(error);
  if (llvm::Error error = configurations.writePicture())
    return std::move(error);
  configurations.print(llvm::outs());
  llvm::outs().flush();
  size_t best = 0;
  if (search->tune > 0) {
    codegen::handleInterruption();
    auto found = tool::tune(configurations, search->tune, llvm::outs());
    if (!found)
      return found.takeError();
    best = *found;
  }
  return tool::readCompileOptions(
      configurations.valuesOf(configurations.all()[best]), nullptr);
}

int CommandLine::runSearch(const tool::SearchOptions &search,
                           const tool::PlanOptions &planning,
                           const tool::DrawOptions &drawings) {
  if (search.tune > 0)
    return fail("--tune runs programs, and plan makes none: give it to compile "
                "or train");
  if (drawings.any() || !planning.annotatedModel.empty())
    return fail("--search makes many plans, which --pareto draws; draw one of "
                "them by the options that it prints");
  tool::ConfigurationSearch configurations(given, search);
  if (llvm::Error error = configurations.run())
    return fail(std::move(error));
  if (llvm::Error error = configurations.writePicture())
    return fail(std::move(error));
  return exitCode(tool::writeOutput(given["o"], [&](llvm::raw_ostream &os) {
    if (planning.asJson)
      os << llvm::formatv("{0:2}", configurations.toJson()) << "\n";
    else
      configurations.print(os);
  }));
}

int CommandLine::runPlan(const tool::DrawOptions &drawings) {
  auto planning =
      tool::readOptions<tool::PlanOptions>(tool::planRows(), givenToPlan);
  if (!planning)
    return fail(llvm::toString(planning.takeError()));
  auto search = tool::readSearchOptions(givenToSearch, given);
  if (!search)
    return fail(search.takeError());
  if (search->workers > 0 && !planning->compare.empty())
    return fail("--workers and --compare are two tables: give one of them");
  if (search->isWanted)
    return runSearch(*search, *planning, drawings);
  if (planning->compare.empty() && search->workers == 0) {
    auto options = readOptions();
    return options ? tool::planModel(*options, *planning, drawings)
                   : fail(options.takeError());
  }
  if (!drawings.trace.empty() || !drawings.measured.empty() ||
      planning->asJson || !planning->annotatedModel.empty())
    return fail("--trace, --measured, --json and --write-onnx show one plan; "
                "--compare and --workers make several, which --svg, --pdf and "
                "--html draw");
  return search->workers > 0 ? compareWorkers(search->workers, drawings)
                             : comparePlans(planning->compare, drawings);
}

int CommandLine::comparePlans(llvm::ArrayRef<std::string> schedules,
                              const tool::DrawOptions &drawings) {
  auto text = tool::readLevelText(given["model"]);
  if (!text)
    return fail(text.takeError());
  if (*text && (*text)->hasDecided(Level::Scheduled))
    return fail("--compare: " + text::printable((*text)->path) +
                " has its schedule already");
  std::vector<tool::PlanCandidate> candidates;
  for (const std::string &name : schedules)
    candidates.push_back(
        {name, tool::readCompileOptions(given.with("schedule", name), *text)});
  return tool::comparePlans(candidates, tool::Compared::Schedules, drawings);
}

int CommandLine::compareWorkers(int64_t workers,
                                const tool::DrawOptions &drawings) {
  for (const char *option : {"ranks", "data-parallel", "zero"})
    if (given.isGiven(option))
      return fail("--workers tries all values of --" + std::string(option) +
                  ": leave that out");
  auto text = tool::readLevelText(given["model"]);
  if (!text)
    return fail(text.takeError());
  if (*text)
    return fail("--workers: " + text::printable((*text)->path) +
                " has decisions already; give the model itself");
  int64_t microBatches = 0;
  if (llvm::Error error = tool::option::readCount(
          "micro-batches", given["micro-batches"], microBatches))
    return fail(std::move(error));
  std::vector<tool::PlanCandidate> candidates;
  for (int64_t ranks = 1; ranks <= workers; ++ranks) {
    if (workers % ranks != 0)
      continue;
    const int64_t replicas = workers / ranks;
    std::string name = std::to_string(ranks) + " x " + std::to_string(replicas);
    if (microBatches % replicas != 0) {
      candidates.push_back({name, tool::option::fail(microBatches,
                                                     " --micro-batches are not "
                                                     "shared evenly by ",
                                                     replicas, " replicas")});
      continue;
    }
    auto shared =
        given.with("ranks", std::to_string(ranks))
            .with("data-parallel", std::to_string(replicas))
            .with("micro-batches", std::to_string(microBatches / replicas));
    candidates.push_back({name, tool::readCompileOptions(shared, *text)});
    llvm::Expected<tool::CompileOptions> &options = candidates.back().options;
    const int64_t level = replicas > 1 && options ? options->highestZero() : 0;
    for (const char *zero : {"1", "2", "3"})
      if (level >= *zero - '0')
        candidates.push_back(
            {name + ", ZeRO-" + zero,
             tool::readCompileOptions(shared.with("zero", zero), *text)});
  }
  return tool::comparePlans(candidates, tool::Compared::Workers, drawings);
}

int CommandLine::runTrain() {
  auto options = readBestOptions();
  if (!options)
    return fail(options.takeError());
  codegen::handleInterruption();
  if (options->emission != tool::Emission::Program)
    return fail("--emit goes with compile, not with train");
  if (!options->output.empty())
    return fail("-o goes with compile, which keeps the program, not with "
                "train; --save FILE says where its weights go");
  return trainModel(std::move(*options), programArguments);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A limit on file sizes is a failed write like any other.
  std::signal(SIGXFSZ, SIG_IGN);
  // A file of words (`@FILE`) is as if its words stood there.
  llvm::BumpPtrAllocator allocator;
  llvm::SmallVector<const char *> words(argv, argv + argc);
  cl::ExpansionContext expansion(allocator, cl::TokenizeGNUCommandLine);
  if (llvm::Error error = expansion.expandResponseFiles(words))
    return exitCode(std::move(error));
  if (llvm::Error error = tool::loadPlugins(words))
    return exitCode(std::move(error));
  CommandLine line;
  std::vector<llvm::StringRef> given(words.begin() + 1, words.end());
  if (std::optional<int> code = line.parse(given))
    return *code;
  return line.run();
}
