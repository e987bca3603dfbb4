//===- pipewright.cpp - The command line ----------------------------------===//
//
// Subcommands and nothing else: options are in Options.cpp, what is done with
// them in Compile.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Compile.h"
#include "tools/pipewright/Options.h"

#include "passes/schedules/Policy.h"
#include "passes/schedules/Timetable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"

#include <csignal>

using namespace pipewright;
namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

/// Each policy with its drawing and formulas, as it describes itself.
static int printSchedules() {
  for (const schedules::Policy *policy : schedules::allPolicies()) {
    llvm::outs() << policy->name() << ": " << policy->summary() << "\n"
                 << "  " << policy->paper() << "\n"
                 << "  bubble: " << policy->bubbleFormula()
                 << "; memory: " << policy->memoryFormula() << "\n";
    if (auto schedule = policy->build(policy->example())) {
      llvm::SmallVector<llvm::StringRef> lines;
      std::string text = schedules::printTimetable(*schedule);
      llvm::StringRef(text).rtrim().split(lines, '\n');
      for (llvm::StringRef line : lines)
        llvm::outs() << "    " << line << "\n";
    } else {
      llvm::consumeError(schedule.takeError());
    }
    llvm::outs() << "\n";
  }
  return 0;
}

/// Compiles to a temporary folder and runs what came out.
static int trainModel(tool::CompileOptions options,
                      llvm::ArrayRef<std::string> programArguments) {
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("pipewright", folder))
    return fail("cannot make a temporary folder: " + error.message());
  options.output = (folder + "/program").str();
  int code = tool::compileModel(options, /*isTemporary=*/true);
  if (code == 0) {
    std::string program = options.output + "/train";
    std::vector<llvm::StringRef> arguments = {program};
    // The folder goes away; what was learned must not go with it. A later
    // --save of the user's own wins.
    for (llvm::StringRef word : {"--save", "trained.safetensors"})
      arguments.push_back(word);
    llvm::append_range(arguments, programArguments);
    std::string message;
    code = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, {}, 0, 0,
                                     &message);
    if (!message.empty())
      code = fail("cannot run the program: " + message);
  }
  llvm::sys::fs::remove_directories(folder);
  return code == 0 ? 0 : 1;
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
    if (tool::isCompileOption(word, takesNext) || word == "--help" ||
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
  tool::OptionSet options({&compile, &plan, &train});
  cl::opt<bool> asJson("json", cl::desc("Print the plan as JSON"),
                       cl::sub(plan), cl::cat(tool::compileCategory()));
  cl::opt<std::string> checkFile(cl::Positional, cl::desc("FILE"),
                                 cl::sub(check),
                                 cl::cat(tool::compileCategory()));
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

  if (list)
    return printSchedules();
  if (check)
    return fail("'check' is not available yet: this version checks the "
                "schedules that it makes itself, in every compilation");
  if (!compile && !plan && !train)
    return fail("expects a command: compile, plan, train, schedules or check "
                "(see pipewright --help)");
  llvm::Expected<tool::CompileOptions> checked = options.check();
  if (!checked)
    return fail(llvm::toString(checked.takeError()));
  if (plan)
    return tool::planModel(*checked, asJson);
  if (train) {
    if (checked->level != tool::Level::Program)
      return fail("--emit goes with compile, not with train");
    return trainModel(std::move(*checked), theirs);
  }
  return tool::compileModel(*checked);
}
