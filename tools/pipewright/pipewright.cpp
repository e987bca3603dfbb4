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

static llvm::Error listSchedules(const tool::ListOptionSet &options,
                                 const tool::DrawOptions &drawings) {
  llvm::Expected<tool::ScheduleSizes> sizes = options.sizes();
  if (!sizes)
    return sizes.takeError();
  if (drawings.any())
    if (llvm::Error error =
            tool::drawSchedule(options.names(), *sizes, drawings))
      return error;
  return options.isJson() ? tool::printSchedulesAsJson(options.names(), *sizes)
                          : tool::printSchedules(options.names(), *sizes);
}

static int comparePlans(const tool::OptionSet &options,
                        llvm::StringRef schedules) {
  llvm::SmallVector<llvm::StringRef> names;
  schedules.split(names, ',');
  for (llvm::StringRef &name : names)
    if (name = name.trim(); name.empty())
      return fail("--compare expects names of schedules with a comma between "
                  "two, but got '" +
                  schedules + "'");
  std::vector<tool::PlanCandidate> candidates;
  for (llvm::StringRef name : names)
    candidates.push_back({name.str(), options.check(name)});
  return tool::comparePlans(candidates);
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

/// Splits the words after `train`: ours, and those of the program. After `--`
/// all are the program's.
static void splitArguments(int argc, char **argv,
                           std::vector<const char *> &ours,
                           std::vector<std::string> &theirs) {
  ours = {argv[0], argv[1]};
  bool hasModel = false;
  for (int i = 2; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    bool takesNext = false;
    if (word == "--") {
      theirs.insert(theirs.end(), argv + i + 1, argv + argc);
      return;
    }
    if (tool::isTrainOption(word, takesNext) || word == "--help" ||
        word == "-h") {
      ours.push_back(argv[i]);
      if (takesNext && i + 1 < argc)
        ours.push_back(argv[++i]);
    } else if (!word.starts_with("-") && !hasModel && theirs.empty()) {
      ours.push_back(argv[i]);
      hasModel = true;
    } else {
      theirs.push_back(word.str());
    }
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A limit on file sizes is a failed write like any other.
  std::signal(SIGXFSZ, SIG_IGN);
  cl::SubCommand compile("compile", "Make a training program of a model");
  cl::SubCommand plan("plan", "Show what would be decided, without code");
  cl::SubCommand train("train",
                       "Compile to a temporary folder and run the program");
  cl::SubCommand list("schedules", "List the schedules, drawn");
  cl::SubCommand check("check", "Prove or refuse a schedule made elsewhere");
  tool::OptionSet options({{tool::Compile, &compile},
                           {tool::Plan, &plan},
                           {tool::Train, &train},
                           {tool::Schedules, &list},
                           {tool::Check, &check}});
  tool::DrawOptionSet drawingOptions(plan, list);
  tool::ListOptionSet listOptions(list);
  tool::CheckCommand checkCommand(check);
  for (cl::SubCommand *command :
       {&compile, &plan, &train, &list, &check, &cl::SubCommand::getTopLevel()})
    cl::HideUnrelatedOptions(tool::compileCategory(), *command);

  std::vector<const char *> ours(argv, argv + argc);
  std::vector<std::string> theirs;
  if (argc > 1 && llvm::StringRef(argv[1]) == "train")
    splitArguments(argc, argv, ours, theirs);
  cl::ParseCommandLineOptions(
      ours.size(), ours.data(),
      "pipewright: pipelined training programs from ONNX models\n");

  if (llvm::Error error = loadPlugins(options.given().all("load-pass-plugin")))
    return fail(llvm::toString(std::move(error)));
  llvm::Expected<tool::DrawOptions> drawings = drawingOptions.check();
  if (!drawings)
    return fail(llvm::toString(drawings.takeError()));
  if (list)
    return exitCode(listSchedules(listOptions, *drawings));
  if (check)
    return exitCode(checkCommand.run());
  if (!compile && !plan && !train)
    return fail("expects a command: compile, plan, train, schedules or check "
                "(see pipewright --help)");
  const bool asJson = options.given().isSet("json");
  if (plan && options.given().isGiven("compare")) {
    if (drawings->any() || asJson)
      return fail("--svg, --html, --trace and --json show one plan; --compare "
                  "makes several");
    return comparePlans(options, options.given()["compare"]);
  }
  llvm::Expected<tool::CompileOptions> checked = options.check();
  if (!checked)
    return fail(llvm::toString(checked.takeError()));
  if (plan)
    return tool::planModel(*checked, asJson, *drawings);
  codegen::handleInterruption();
  if (train) {
    if (checked->level != tool::Level::Program)
      return fail("--emit goes with compile, not with train");
    return trainModel(std::move(*checked), theirs);
  }
  return tool::compileModel(*checked);
}
