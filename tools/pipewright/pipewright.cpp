//===- pipewright.cpp - The command line ----------------------------------===//
//
// Subcommands and nothing else: options are in Options.cpp, what is done with
// them in Compile.cpp.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Interruption.h"
#include "codegen/package/PartialFolder.h"
#include "codegen/package/RunTool.h"
#include "tools/pipewright/Check.h"
#include "tools/pipewright/Compile.h"
#include "tools/pipewright/Options.h"
#include "tools/pipewright/Schedules.h"

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

#include <csignal>
#include <optional>

using namespace pipewright;
namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

static int exitCode(llvm::Error error) {
  return error ? fail(llvm::toString(std::move(error))) : 0;
}

/// Fails on the first plugin that cannot be loaded: going on without it would
/// only fail later, and less clearly.
static llvm::Error loadPlugins(llvm::ArrayRef<std::string> files) {
  for (const std::string &file : files) {
    // A name without a folder would be looked for among the system's libraries.
    bool isHere =
        !llvm::sys::path::has_parent_path(file) && llvm::sys::fs::exists(file);
    llvm::Expected<mlir::PassPlugin> plugin =
        mlir::PassPlugin::load(isHere ? "./" + file : file);
    if (!plugin)
      return llvm::createStringError("cannot load the plugin '" + file + "': " +
                                     llvm::toString(plugin.takeError()));
    plugin->registerPassRegistryCallbacks();
  }
  return llvm::Error::success();
}

/// The files that the command line names as plugins, before it is read.
static std::vector<std::string>
namesOfPlugins(llvm::ArrayRef<const char *> words) {
  std::vector<std::string> names;
  for (size_t i = 0; i < words.size() && words[i] != llvm::StringRef("--");
       ++i) {
    auto [option, value] = llvm::StringRef(words[i]).split('=');
    if (!option.consume_front("-"))
      continue;
    option.consume_front("-");
    if (option != tool::kPluginOption)
      continue;
    if (llvm::StringRef(words[i]).contains('='))
      names.push_back(value.str());
    else if (i + 1 < words.size())
      names.push_back(words[++i]);
  }
  return names;
}

/// Compiles to a temporary folder and runs what came out.
static int trainModel(tool::CompileOptions options,
                      llvm::ArrayRef<std::string> programArguments) {
  llvm::SmallString<128> prefix;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, prefix);
  llvm::sys::path::append(prefix, "pipewright-train-");
  codegen::PartialFolder::removeDead(prefix,
                                     [](const std::string &) { return true; });
  llvm::Expected<codegen::PartialFolder> folder =
      codegen::PartialFolder::create(prefix);
  if (!folder)
    return fail("cannot make a temporary folder '" + prefix +
                "...': " + llvm::toString(folder.takeError()));
  options.output = folder->pathOf("program");
  if (int code = tool::compileModel(options, /*isTemporary=*/true))
    return code;
  // The folder goes away; what was learned must not go with it. A later
  // --save of the user's own wins.
  std::vector<std::string> command = {options.output + "/train", "--save",
                                      "trained.safetensors"};
  llvm::append_range(command, programArguments);
  llvm::Expected<int> code = codegen::runInOurPlace(command);
  if (!code)
    return fail(llvm::toString(code.takeError()));
  return *code == 0 ? 0 : 1;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

namespace {

/// The commands and their options. Plugins are loaded before it is made.
class CommandLine {
public:
  /// Reads the words; what `train` does not know is for its program.
  void parse(std::vector<const char *> words);
  /// Does what the command says; returns the exit code.
  int run();

private:
  std::vector<const char *> takeOurs(llvm::ArrayRef<const char *> words);
  int runList(const tool::DrawOptions &drawings);
  int runPlan(const tool::DrawOptions &drawings);
  int runTrain();
  int comparePlans(llvm::ArrayRef<std::string> schedules);

  cl::SubCommand compile{"compile", "Make a training program of a model"};
  cl::SubCommand plan{"plan", "Show what would be decided, without code"};
  cl::SubCommand train{"train",
                       "Compile to a temporary folder and run the program"};
  cl::SubCommand list{"schedules", "List the schedules, drawn"};
  cl::SubCommand check{"check", "Prove or refuse a schedule made elsewhere"};
  tool::VerbCommands commands = {{tool::Compile, &compile},
                                 {tool::Plan, &plan},
                                 {tool::Train, &train},
                                 {tool::Schedules, &list},
                                 {tool::Check, &check}};
  tool::OptionValues given{tool::compileRows(), commands, tool::Models};
  tool::OptionValues givenToPlan{tool::planRows(), commands, tool::Plan};
  tool::OptionValues givenToDraw{tool::drawRows(), commands,
                                 tool::Plan | tool::Schedules | tool::Check};
  tool::OptionValues givenToList{tool::listRows(), commands, tool::Schedules};
  tool::OptionValues givenToCheck{tool::checkRows(), commands, tool::Check};
  /// The words after `train` that its program gets.
  std::vector<std::string> programArguments;
};

} // namespace

void CommandLine::parse(std::vector<const char *> words) {
  for (cl::SubCommand *command :
       {&compile, &plan, &train, &list, &check, &cl::SubCommand::getTopLevel()})
    cl::HideUnrelatedOptions(tool::compileCategory(), *command);
  if (words.size() > 1 && llvm::StringRef(words[1]) == "train")
    words = takeOurs(words);
  cl::ParseCommandLineOptions(
      words.size(), words.data(),
      "pipewright: pipelined training programs from ONNX models\n");
}

/// Splits the words of `train`: ours, and those of the program. After `--` all
/// are the program's.
std::vector<const char *>
CommandLine::takeOurs(llvm::ArrayRef<const char *> words) {
  std::vector<const char *> ours = words.take_front(2);
  std::vector<std::string> &theirs = programArguments;
  bool hasModel = false;
  for (size_t i = 2; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    bool takesNext = false;
    if (word == "--") {
      theirs.insert(theirs.end(), words.begin() + i + 1, words.end());
      break;
    }
    if (given.isOption(word, tool::Train, takesNext) || word == "--help" ||
        word == "-h") {
      ours.push_back(words[i]);
      if (takesNext && i + 1 < words.size())
        ours.push_back(words[++i]);
    } else if (!word.starts_with("-") && !hasModel && theirs.empty()) {
      ours.push_back(words[i]);
      hasModel = true;
    } else {
      theirs.push_back(word.str());
    }
  }
  return ours;
}

int CommandLine::run() {
  auto drawings =
      tool::readOptions<tool::DrawOptions>(tool::drawRows(), givenToDraw);
  if (!drawings)
    return fail(llvm::toString(drawings.takeError()));
  if (list)
    return runList(*drawings);
  if (check) {
    auto options =
        tool::readOptions<tool::CheckOptions>(tool::checkRows(), givenToCheck);
    return exitCode(options ? tool::checkFile(*options, *drawings)
                            : options.takeError());
  }
  if (plan)
    return runPlan(*drawings);
  if (train)
    return runTrain();
  if (!compile)
    return fail("expects a command: compile, plan, train, schedules or check "
                "(see pipewright --help)");
  auto options = tool::readCompileOptions(given);
  if (!options)
    return fail(llvm::toString(options.takeError()));
  codegen::handleInterruption();
  return tool::compileModel(*options);
}

int CommandLine::runList(const tool::DrawOptions &drawings) {
  auto options =
      tool::readOptions<tool::ListOptions>(tool::listRows(), givenToList);
  if (!options)
    return fail(llvm::toString(options.takeError()));
  return exitCode(tool::runSchedules(*options, drawings));
}

int CommandLine::runPlan(const tool::DrawOptions &drawings) {
  auto planning =
      tool::readOptions<tool::PlanOptions>(tool::planRows(), givenToPlan);
  if (!planning)
    return fail(llvm::toString(planning.takeError()));
  if (planning->compare.empty()) {
    auto options = tool::readCompileOptions(given);
    return options ? tool::planModel(*options, planning->asJson, drawings)
                   : fail(llvm::toString(options.takeError()));
  }
  if (drawings.any() || planning->asJson)
    return fail(
        "--svg, --pdf, --html, --trace and --json show one plan; --compare "
        "makes several");
  return comparePlans(planning->compare);
}

int CommandLine::comparePlans(llvm::ArrayRef<std::string> schedules) {
  std::vector<tool::PlanCandidate> candidates;
  for (const std::string &name : schedules)
    candidates.push_back(
        {name, tool::readCompileOptions(given.with("schedule", name))});
  return tool::comparePlans(candidates);
}

int CommandLine::runTrain() {
  auto options = tool::readCompileOptions(given);
  if (!options)
    return fail(llvm::toString(options.takeError()));
  codegen::handleInterruption();
  if (options->level != tool::Level::Program)
    return fail("--emit goes with compile, not with train");
  return trainModel(std::move(*options), programArguments);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A limit on file sizes is a failed write like any other.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<const char *> words(argv, argv + argc);
  if (llvm::Error error = loadPlugins(namesOfPlugins(words)))
    return exitCode(std::move(error));
  CommandLine line;
  line.parse(std::move(words));
  return line.run();
}
