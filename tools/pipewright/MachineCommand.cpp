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

static llvm::Error readName(const OptionSpelling &row,
                            const OptionValues &given,
                            MachineOptions &options) {
  if (!given.isGiven(row.name))
    return llvm::Error::success();
  options.name = given[row.name].str();
  if (options.measures)
    return option::fail("--", row.name,
                        " is for machine show: machine measure "
                        "measures the one here");
  if (!MachineModel::named(options.name))
    return option::fail("--", row.name, " expects ", MachineModel::names(),
                        ", but got '", text::shortened(options.name, 64), "'");
  return llvm::Error::success();
}

const std::vector<OptionRow<MachineOptions>> &pipewright::tool::machineRows() {
  static const std::vector<OptionRow<MachineOptions>> rows =
      under<OptionRow<MachineOptions>>(
          Heading::Output,
          {{{.name = "show|measure", .kind = OptionSpelling::Word}, readVerb},
           {{"machine", "NAME",
             "Show a machine that predictions can be for, in place of the core "
             "here: with --json, a file to change and to give to --machine"},
            readName},
           {{.name = "json",
             .help = "Print the figures as JSON",
             .kind = OptionSpelling::Flag},
            option::flag(&MachineOptions::asJson)}});
  return rows;
}

using MachineModels = std::map<Precision, MachineModel>;

static llvm::json::Object toJson(const MachineModels &models) {
  llvm::json::Object all;
  for (const auto &[precision, model] : models) {
    llvm::json::Object figures;
    for (const MachineFigure &figure : machineFigures())
      if (figure.isKnown(model))
        figures[figure.name] = model.*figure.place;
    all[nameOf(precision)] = std::move(figures);
  }
  return all;
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

static std::string textOf(const MachineModel &model,
                          const MachineFigure &figure) {
  const double number = model.*figure.place;
  if (!figure.isKnown(model))
    return "not known";
  if (!figure.isCount)
    return withUnit(number, figure.unit);
  return number < 1e6 ? std::to_string(static_cast<int64_t>(number)) : "all";
}

static void print(llvm::raw_ostream &os, const MachineModels &models) {
  for (const MachineFigure &figure : machineFigures()) {
    os << llvm::formatv("  {0,-18}", figure.name);
    for (const auto &[precision, model] : models)
      os << llvm::formatv(" {0,5} {1,-14}", nameOf(precision),
                          textOf(model, figure));
    os << " " << figure.meaning << "\n";
  }
}

static void print(llvm::raw_ostream &os, const MeasuredMachine &machine) {
  os << "one core of " << machine.processor << ", of which there are "
     << countCores() << "\n";
  print(os, machine.models);
  if (machine.path.empty())
    os << "not kept, because there is no folder for it: each command measures "
          "anew\n";
  else
    os << "kept in " << machine.path << "\n";
}

/// A named machine has the same figures whatever a program computes in.
static void showNamed(const MachineOptions &options) {
  const MachineModel model = *MachineModel::named(options.name);
  if (options.asJson) {
    const MachineModels models = {{Precision::F32, model},
                                  {Precision::Tf32, model},
                                  {Precision::BF16, model}};
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(llvm::json::Object{
                                               {"processor", options.name},
                                               {"figures", toJson(models)}}))
                 << "\n";
    return;
  }
  llvm::outs() << options.name << "\n";
  for (const MachineFigure &figure : machineFigures())
    llvm::outs() << llvm::formatv("  {0,-18} {1,-14} {2}\n", figure.name,
                                  textOf(model, figure), figure.meaning);
}

llvm::Error pipewright::tool::runMachine(const MachineOptions &options) {
  if (!options.name.empty()) {
    showNamed(options);
    return llvm::Error::success();
  }
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
    llvm::outs() << llvm::formatv("{0:2}",
                                  llvm::json::Value(llvm::json::Object{
                                      {"processor", machine.processor},
                                      {"cores", countCores()},
                                      {"file", machine.path},
                                      {"figures", toJson(machine.models)}}))
                 << "\n";
  else
    print(llvm::outs(), machine);
  return llvm::Error::success();
}
