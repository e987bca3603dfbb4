//===- Compile.cpp - From a model to a plan or a program ------------------===//
//
// What a command says of a model that has come as far as it wants.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Compile.h"

#include "codegen/host/EmitHost.h"
#include "codegen/package/Package.h"
#include "frontends/Frontends.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/KernelSteps.h"
#include "tools/pipewright/Messages.h"
#include "tools/pipewright/OutputFile.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <optional>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

/// Prints to `-o`, or to the standard output.
static int print(StringRef path,
                 llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (llvm::Error error = writeOutput(path, write))
    return fail(llvm::toString(std::move(error)));
  return 0;
}

/// The module as text; nested modules of kernels, too.
static int printModule(ModuleOp module, const CompileOptions &options) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(options.printsLocations, /*prettyForm=*/false)
      .useLocalScope();
  return print(options.output, [&](llvm::raw_ostream &os) {
    module->print(os, flags);
    os << "\n";
  });
}

static int printHost(Compilation &compilation, const CompileOptions &options) {
  codegen::HostOptions host;
  host.target = options.target;
  host.modelName = compilation.modelName();
  FailureOr<codegen::HostFiles> files =
      codegen::emitHost(compilation.module(), host);
  if (failed(files))
    return 1;
  return print(options.output,
               [&](llvm::raw_ostream &os) { codegen::printFiles(os, *files); });
}

static int printKernels(Compilation &compilation,
                        const CompileOptions &options) {
  OwningOpRef<ModuleOp> kernels = kernelsOf(compilation.module());
  if (options.emission == Emission::Ptx) {
    FailureOr<std::string> text =
        options.target->emitAssembly(*kernels, options.decisions.architecture);
    return failed(text) ? 1 : print(options.output, [&](llvm::raw_ostream &os) {
      os << *text;
    });
  }
  if (failed(lowerKernels(compilation, *kernels, options)))
    return 1;
  return printModule(*kernels, options);
}

static int emit(const CompileOptions &options) {
  if (options.machine && !options.decidesByMachine() &&
      !options.cutsByMachine())
    return fail("--machine is for predictions, of which --emit prints none");
  Compilation compilation(options);
  Level level =
      options.emission == Emission::Level ? options.level : Level::Allocated;
  if (failed(compilation.open()) || failed(compilation.runTo(level)))
    return 1;
  if (options.emission == Emission::Level)
    return printModule(compilation.module(), options);
  return options.emission == Emission::Cpp ? printHost(compilation, options)
                                           : printKernels(compilation, options);
}

int compileModel(CompileOptions given, bool isTemporary) {
  if (given.emission != Emission::Program)
    return emit(given);
  auto begin = std::chrono::steady_clock::now();
  StringRef model = given.import.modelPath;
  if (std::error_code error =
          llvm::sys::fs::access(model, llvm::sys::fs::AccessMode::Exist))
    return fail(model + ": cannot be read: " + error.message());
  if (given.output.empty())
    given.output = llvm::sys::path::stem(model).str();
  // Before the work: what cannot be built or written is said at once.
  if (given.build)
    if (llvm::Error error = given.target->checkBuild())
      return fail(llvm::toString(std::move(error)));
  llvm::Expected<codegen::OutputFolder> folder = codegen::OutputFolder::create(
      given.output,
      given.force ? codegen::InTheWay::Rename : codegen::InTheWay::Refuse);
  if (!folder)
    return fail(llvm::toString(folder.takeError()));
  Compilation compilation(given);
  if (failed(compilation.open()) || failed(compilation.runTo(Level::Allocated)))
    return 1;
  auto plan = compilation.makePlan();
  TimingScope writing = compilation.times().nest("write the program");
  if (failed(plan) ||
      failed(codegen::writePackage(compilation.module(), compilation.weights(),
                                   *plan, *folder, given.build)))
    return 1;
  writing.stop();
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  llvm::outs() << "compiled " << plan->model << ": "
               << codegen::count(plan->stages.size(), "stage") << " on "
               << codegen::countRanks(*plan) << ", "
               << codegen::count(plan->microBatches, "micro-batch") << " of "
               << plan->microBatchSize << ", schedule " << plan->schedule
               << "\n  trains ";
  plan->weights.print(llvm::outs());
  llvm::outs() << "\n";
  for (auto [number, rank] : llvm::enumerate(plan->ranks))
    llvm::outs() << "  rank " << number << ": arena "
                 << codegen::formatBytes(rank.arenaBytes) << ", busy "
                 << codegen::formatSeconds(rank.busySeconds)
                 << " of a predicted step of "
                 << codegen::formatSeconds(plan->simulation.globalStepTime)
                 << "\n";
  if (const std::string hosts = plan->hostWords(); !hosts.empty())
    llvm::outs() << "  " << hosts << "\n";
  plan->printOnCoresHere(llvm::outs(), /*indent=*/2);
  // A command may not begin with a dash.
  std::string output =
      (StringRef(given.output).starts_with("-") ? "./" : "") + given.output;
  if (!isTemporary)
    llvm::outs() << "wrote " << output << " in "
                 << codegen::formatSeconds(time.count())
                 << (given.build ? "; run " + output + "/train --help"
                                 : "; build it with cmake -S " + output +
                                       "/src -B BUILD")
                 << "\n";
  llvm::outs().flush();
  return 0;
}

using enum OptionSpelling::Kind;

static llvm::Error readCompare(llvm::StringRef, llvm::StringRef text,
                               PlanOptions &options) {
  llvm::SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    options.compare.push_back(name.trim().str());
    if (options.compare.back().empty())
      return option::fail("--compare expects names of schedules with a comma "
                          "between two, but got '",
                          text, "'");
  }
  return llvm::Error::success();
}

const std::vector<OptionRow<PlanOptions>> &planRows() {
  static const std::vector<OptionRow<PlanOptions>> rows =
      under<OptionRow<PlanOptions>>(
          Heading::Output,
          {{{.name = "json", .help = "Print the plan as JSON", .kind = Flag},
            option::flag(&PlanOptions::asJson)},
           {{"compare", "NAME,NAME,...",
             "One table of these schedules instead; drawings show all of them"},
            option::ifGiven(readCompare)},
           {{"write-onnx", "OUT.onnx",
             "Write the model with the stage of each node, for compile "
             "--balance annotated:pipewright, people and other tools"},
            option::file(&PlanOptions::annotatedModel)}});
  return rows;
}

/// Writes the model with the stages that it is cut into.
static LogicalResult writeAnnotated(Compilation &compilation,
                                    const CompileOptions &options,
                                    StringRef path) {
  FailureOr<frontend::StageAnnotations> stages = compilation.annotations();
  if (failed(stages))
    return failure();
  auto model = frontend::annotateModel(options.import.modelPath, path, *stages);
  if (!model)
    return fail(llvm::toString(model.takeError())), failure();
  if (!model->split.empty())
    printMessage(
        "warning",
        "stages have the border within " + std::to_string(model->split.size()) +
            (model->split.size() == 1 ? " node" : " nodes") +
            ", which get no stage in " + path.str() + ", the first is '" +
            text::shortened(model->split[0]) + "'");
  if (llvm::Error error =
          writeOutput(path, [&](llvm::raw_ostream &os) { os << model->bytes; }))
    return fail(llvm::toString(std::move(error))), failure();
  return success();
}

int planModel(const CompileOptions &given, const PlanOptions &planning,
              const DrawOptions &drawings) {
  if (given.emission != Emission::Program)
    return fail("--emit goes with compile, not with plan");
  Compilation compilation(given);
  if (failed(compilation.open()) ||
      (!planning.annotatedModel.empty() &&
       failed(writeAnnotated(compilation, given, planning.annotatedModel))) ||
      failed(compilation.runTo(Level::Allocated)))
    return 1;
  auto plan = compilation.makePlan();
  if (failed(plan))
    return 1;
  schedules::Picture picture = plan->picture();
  if (llvm::Error error = writeDrawings(picture, drawings))
    return fail(llvm::toString(std::move(error)));
  return print(given.output, [&](llvm::raw_ostream &os) {
    if (planning.asJson)
      os << llvm::formatv("{0:2}", plan->toJson()) << "\n";
    else
      plan->print(os);
  });
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

namespace {

struct ComparedPlan {
  std::string name;
  bool isChoice = false;
  codegen::Plan plan;

  double step() const { return plan.simulation.globalStepTime; }
  /// Of the fullest rank.
  int64_t stashes() const {
    int64_t most = 0;
    for (const codegen::RankPlan &rank : plan.ranks)
      most = std::max(most, rank.peakStashBytes);
    return most;
  }
};

} // namespace

/// The fastest first. Of equal ones, what was asked to choose, then what keeps
/// least.
static void sortPlans(std::vector<ComparedPlan> &plans) {
  llvm::sort(plans, [](const ComparedPlan &a, const ComparedPlan &b) {
    return a.step() < b.step();
  });
  for (auto first = plans.begin(); first != plans.end();) {
    auto end = std::find_if(first, plans.end(), [&](const ComparedPlan &plan) {
      return isShorterStep(first->step(), plan.step());
    });
    std::sort(first, end, [](const ComparedPlan &a, const ComparedPlan &b) {
      return std::tuple(!a.isChoice, a.stashes(), a.name) <
             std::tuple(!b.isChoice, b.stashes(), b.name);
    });
    first = end;
  }
}

/// What all plans have in common.
static void printHead(llvm::raw_ostream &os, const codegen::Plan &plan,
                      Compared compared) {
  os << "model " << plan.model << ": ";
  if (compared == Compared::Workers)
    os << codegen::count(plan.ranks.size() * plan.replicas, "worker")
       << ", schedule " << text::printable(plan.schedule) << ", "
       << plan.microBatches * plan.replicas << " micro-batches of "
       << plan.microBatchSize << " in a step";
  else
    os << codegen::countRanks(plan) << ", " << plan.microBatches
       << " micro-batches of " << plan.microBatchSize;
  os << "; ";
}

static void printComparison(llvm::raw_ostream &os,
                            llvm::ArrayRef<ComparedPlan> plans,
                            Compared compared) {
  const codegen::Plan &first = plans.front().plan;
  printHead(os, first, compared);
  if (std::string machine = first.machineWords(); !machine.empty())
    os << "predicted " << machine << "; ";
  os << "stash and arena of the fullest rank, bubble of the idlest";
  bool isShared = llvm::any_of(plans, [](const ComparedPlan &each) {
    return !each.plan.simulation.works.empty();
  });
  if (isShared)
    os << ", exposed: by how much sums and copies of weights lengthen the step";
  std::string here;
  if (first.coresHere > 0) {
    here = "on " + codegen::count(first.coresHere, "core");
    os << "; '" << here << "' is the least step here";
  }
  auto row = [&](const auto &...cells) {
    os << llvm::formatv("{0,-18} {1,6} {2,10} {3,10}", cells...);
  };
  os << "\n\n";
  row(compared == Compared::Workers ? "ranks x replicas" : "schedule", "stages",
      "step", "span");
  os << "    bubble      stash      arena       sent";
  if (isShared)
    os << llvm::formatv(" {0,10}", "exposed");
  os << (here.empty() ? "" : llvm::formatv(" {0,10}", here).str()) << "\n";
  for (const ComparedPlan &each : plans) {
    const codegen::Plan &plan = each.plan;
    double bubble = 0;
    int64_t arena = 0;
    for (const codegen::RankPlan &rank : plan.ranks) {
      bubble = std::max(bubble, rank.bubbleFraction);
      arena = std::max(arena, rank.arenaBytes);
    }
    row(each.name, plan.stages.size(), codegen::formatSeconds(each.step()),
        codegen::formatSeconds(plan.simulation.spanStepTime));
    os << llvm::formatv(" {0,7:F1} % {1,10} {2,10} {3,10}", bubble * 100,
                        codegen::formatBytes(each.stashes()),
                        codegen::formatBytes(arena),
                        codegen::formatBytes(plan.sent.bytes));
    if (isShared)
      os << llvm::formatv(
          " {0,10}", codegen::formatSeconds(plan.simulation.exposedSeconds));
    if (!here.empty())
      os << llvm::formatv(" {0,10}", codegen::formatSeconds(plan.secondsHere));
    os << "\n";
  }
}

int comparePlans(llvm::MutableArrayRef<PlanCandidate> candidates,
                 Compared compared, const DrawOptions &drawings) {
  std::vector<ComparedPlan> plans;
  // One import is enough: candidates differ in what comes behind it.
  std::optional<Compilation> compilation;
  for (PlanCandidate &candidate : candidates) {
    if (!candidate.options) {
      printMessage("warning",
                   candidate.name + " is left out: " +
                       llvm::toString(candidate.options.takeError()));
      continue;
    }
    if (!compilation && failed(compilation.emplace(*candidate.options).open()))
      return 1;
    auto plan = compilation->planUnder(*candidate.options);
    if (succeeded(plan))
      plans.push_back({candidate.name, candidate.options->policy->isChoice(),
                       std::move(*plan)});
    else
      printMessage("warning", candidate.name + " is left out");
  }
  if (plans.empty())
    return fail(compared == Compared::Workers
                    ? "none of the ways to use the workers is possible"
                    : "none of the schedules is possible");
  sortPlans(plans);
  std::vector<schedules::Picture> pictures;
  for (const ComparedPlan &each : plans)
    pictures.push_back(each.plan.picture());
  if (llvm::Error error = writeDrawings(pictures, drawings))
    return fail(llvm::toString(std::move(error)));
  printComparison(llvm::outs(), plans, compared);
  if (const codegen::Plan &first = plans.front().plan;
      compared == Compared::Workers && first.ranks.size() == 1 &&
      first.replicas > 1)
    llvm::outs() << "\nno pipeline is needed where a worker has room for "
                 << codegen::formatBytes(first.ranks.front().arenaBytes)
                 << ": replicas of one rank are the fastest\n";
  return 0;
}

} // namespace pipewright::tool
