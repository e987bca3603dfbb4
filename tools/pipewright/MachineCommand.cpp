//===- MachineCommand.cpp - What predictions are made for -----------------===//

#include "tools/pipewright/MachineCommand.h"

#include "passes/planning/MachineFile.h"
#include "support/Text.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace pipewright;
using namespace pipewright::tool;

static llvm::Error readVerb(const OptionSpelling &row,
                            const OptionValues &given,
                            MachineOptions &options) {
  llvm::StringRef verb = given[row.name];
  if (verb != "show" && verb != "measure")
    return option::fail("machine expects show or measure, but got '",
                        text::shortened(verb, 64), "'");
  options.measures = verb == "measure";
  return llvm::Error::success();
}

const std::vector<OptionRow<MachineOptions>> &pipewright::tool::machineRows() {
  static const std::vector<OptionRow<MachineOptions>> rows =
      under<OptionRow<MachineOptions>>(
          Heading::Output,
          {{{.name = "show|measure", .kind = OptionSpelling::Word}, readVerb},
           {{.name = "json",
             .help = "Print the figures as JSON",
             .kind = OptionSpelling::Flag},
            option::flag(&MachineOptions::asJson)}});
  return rows;
}

static llvm::json::Value toJson(const MeasuredMachine &machine) {
  llvm::json::Object models;
  for (const auto &[precision, model] : machine.models) {
    llvm::json::Object figures;
    for (const MachineFigure &figure : machineFigures())
      figures[figure.name] = model.*figure.place;
    models[nameOf(precision)] = std::move(figures);
  }
  return llvm::json::Object{{"processor", machine.processor},
                            {"cores", countCores()},
                            {"file", machine.path},
                            {"figures", std::move(models)}};
}

/// `51.2 GFLOP/s`, `5.0 us`
static std::string withUnit(double number, llvm::StringRef unit) {
  static constexpr std::pair<double, llvm::StringLiteral> prefixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}};
  for (const auto &[size, prefix] : prefixes)
    if (number >= size)
      return llvm::formatv("{0:F1} {1}{2}", number / size, prefix, unit);
  return llvm::formatv("{0:F2} n{1}", number * 1e9, unit);
}

static void print(llvm::raw_ostream &os, const MeasuredMachine &machine) {
  os << "one core of " << machine.processor << ", of which there are "
     << countCores() << "\n";
  for (const MachineFigure &figure : machineFigures()) {
    os << llvm::formatv("  {0,-18}", figure.name);
    for (const auto &[precision, model] : machine.models)
      os << llvm::formatv(" {0,5} {1,-14}", nameOf(precision),
                          withUnit(model.*figure.place, figure.unit));
    os << " " << figure.meaning << "\n";
  }
  if (machine.path.empty())
    os << "not kept, because there is no folder for it: each command measures "
          "anew\n";
  else
    os << "kept in " << machine.path << "\n";
}

llvm::Error pipewright::tool::runMachine(const MachineOptions &options) {
  MeasuredMachine machine;
  if (options.measures) {
    llvm::Expected<MeasuredMachine> measured = measureMachine();
    if (!measured)
      return measured.takeError();
    machine = std::move(*measured);
  } else {
    machine = measuredMachine();
  }
  if (options.asJson)
    llvm::outs() << llvm::formatv("{0:2}", toJson(machine)) << "\n";
  else
    print(llvm::outs(), machine);
  return llvm::Error::success();
}
