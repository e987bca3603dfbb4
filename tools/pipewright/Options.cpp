//===- Options.cpp - What the user asked for ------------------------------===//
//
// Every value is checked here, before the model is even opened, and a bad one
// is named together with what would be right. The options themselves are rows
// in OptionRows.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Options.h"

#include "passes/planning/MachineLinks.h"

#include "support/Text.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::optional<int64_t> CompileOptions::limitOf(int64_t rank) const {
  if (!machine)
    return memoryLimit;
  const MachineModel own = machine->model.ofRank(rank, mesh());
  if (!findMachineFigure("memory")->isKnown(own))
    return memoryLimit;
  const auto bytes = static_cast<int64_t>(std::clamp(own.memory, 1.0, 1e18));
  return memoryLimit ? std::min(*memoryLimit, bytes) : bytes;
}

std::vector<runtime::ProcessMap> CompileOptions::processMaps() const {
  return processMapsOn(machineModel(), pipelines.scheduled.ranks, replicas,
                       policy.policy && policy->movesStashes(sizes()));
}

runtime::Mesh CompileOptions::mesh() const {
  if (text && text->mesh)
    return *text->mesh;
  return {.pipe = pipelines.scheduled.ranks,
          .data = replicas,
          .map = processMap ? *processMap : processMaps().front()};
}

bool CompileOptions::limitsMemory() const {
  for (int64_t rank = 0; rank < mesh().pipe; ++rank)
    if (limitOf(rank))
      return true;
  return false;
}

void CompileOptions::dropMemoryLimits() {
  memoryLimit.reset();
  if (machine)
    machine->model.memory = MachineModel::unknownMemory;
}

//===----------------------------------------------------------------------===//
// What plan.json repeats
//===----------------------------------------------------------------------===//

Recorded recordText(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &) {
  return text::printable(given[row.name]);
}

Recorded recordGiven(const OptionSpelling &row, const OptionValues &given,
                     const CompileOptions &options) {
  if (row.kind != OptionSpelling::List)
    return given[row.name].empty() ? std::nullopt
                                   : recordText(row, given, options);
  llvm::json::Array all;
  for (const std::string &one : given.all(row.name))
    all.push_back(text::printable(one));
  if (all.empty())
    return std::nullopt;
  return all;
}

Recorded recordFlag(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &) {
  return given.isSet(row.name);
}

Recorded recordNothing(const OptionSpelling &, const OptionValues &,
                       const CompileOptions &) {
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Fails with all options that come too late.
static llvm::Error refuseDecided(const OptionValues &given,
                                 const LevelText &text) {
  std::vector<std::string> late;
  for (const CompileRow &row : compileRows())
    if (text.hasDecided(row.decided) && given.isGiven(row.spelling.name))
      late.push_back("--" + row.spelling.name);
  if (late.empty())
    return llvm::Error::success();
  bool isOne = late.size() == 1;
  return option::fail(llvm::join(late, ", "), ": ", text::printable(text.path),
                      " has ", isOne ? "this" : "these", " already; leave ",
                      isOne ? "it" : "them", " out");
}

/// Text was made for one machine, so for targets that decide for the same.
static llvm::Error checkMachine(const CompileOptions &options) {
  std::map<std::string, std::string> said = options.text->options();
  auto made = said.contains("target") ? codegen::findTarget(said["target"])
                                      : options.target;
  if (!made)
    return made.takeError();
  std::string machine = (*made)->machineName(options.precision);
  if (machine == options.target->machineName(options.precision))
    return llvm::Error::success();
  return option::fail("--target ", options.target->name(), ": ",
                      text::printable(options.text->path),
                      " was made for the machine '", machine,
                      "'; leave it out, or make the text anew");
}

/// Two copies of the model must not depend on the order in which each sums over
/// replicas.
static void orderCopies(CompileOptions &options) {
  options.pipelines.scheduled.copiesLast = options.replicas > 2 &&
                                           options.policy->copies() > 1 &&
                                           !options.target->addsInOneOrder();
}

/// Where the user does not say how to cut: by predicted times, if these are the
/// same wherever a program is compiled.
static void chooseBalance(CompileOptions &options) {
  if (options.choosesBalance)
    return;
  const bool isSameEverywhere =
      options.machine || !options.target->isMeasuredHere();
  options.pipelines.staged.balance = isSameEverywhere ? "step" : "flops";
}

/// Reads the rows that are still open, and those that the text has values for.
static llvm::Expected<CompileOptions>
readRows(const OptionValues &given, std::shared_ptr<LevelText> text) {
  CompileOptions options;
  std::map<std::string, std::string> said;
  if (text)
    said = text->options();
  OptionValues all = given.withDefaults(said);
  std::vector<const CompileRow *> rows;
  for (const CompileRow &row : compileRows())
    if (!text || !text->hasDecided(row.decided) ||
        said.contains(row.spelling.name))
      rows.push_back(&row);
  options.text = std::move(text);
  for (const CompileRow *row : rows)
    if (row->read)
      if (llvm::Error error = row->read(row->spelling, all, options))
        return std::move(error);
  chooseBalance(options);
  for (const CompileRow *row : rows)
    if (auto value = row->record(row->spelling, all, options))
      options.given[row->key] = std::move(*value);
  return options;
}

llvm::Expected<CompileOptions>
readCompileOptions(const OptionValues &given, std::shared_ptr<LevelText> text) {
  if (text)
    if (llvm::Error error = refuseDecided(given, *text))
      return std::move(error);
  auto options = readRows(given, std::move(text));
  if (options)
    orderCopies(*options);
  if (options && options->text && options->text->level > Level::Import)
    if (llvm::Error error = checkMachine(*options))
      return std::move(error);
  return options;
}

llvm::Error addPasses(llvm::StringRef pipeline, mlir::OpPassManager &pm) {
  llvm::StringRef inner = pipeline;
  if (inner.consume_front("builtin.module(") && !inner.consume_back(")"))
    inner = pipeline;
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (succeeded(mlir::parsePassPipeline(inner, pm, errors)))
    return llvm::Error::success();
  // A line with a place, and then the text with a mark.
  llvm::StringRef first = llvm::StringRef(text).split('\n').first;
  llvm::StringRef reason = first.split("error: ").second;
  return option::fail(reason.empty() ? first : reason);
}

} // namespace pipewright::tool
