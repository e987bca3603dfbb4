//===- MachineCommand.cpp - What predictions are made for -----------------===//

#include "tools/pipewright/MachineCommand.h"

#include "passes/planning/MachineFile.h"
#include "support/Text.h"
#include "tools/pipewright/ChosenMachine.h"
#include "tools/pipewright/OutputFile.h"

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

static llvm::Error readName(llvm::StringRef name, llvm::StringRef text,
                            MachineOptions &options) {
  options.name = text.str();
  if (options.measures)
    return option::fail("--", name,
                        " is for machine show: machine measure "
                        "measures the one here");
  return llvm::Error::success();
}

static llvm::Error readOutput(const OptionSpelling &row,
                              const OptionValues &given,
                              MachineOptions &options) {
  options.output = given[row.name].str();
  if (!given.isGiven(row.name) ||
      llvm::StringRef(options.output).ends_with(".json"))
    return llvm::Error::success();
  return option::fail("-", row.name,
                      " expects a FILE.json, which --machine "
                      "reads, but got '",
                      text::shortened(options.output, 64), "'");
}

const std::vector<OptionRow<MachineOptions>> &pipewright::tool::machineRows() {
  static const std::vector<OptionRow<MachineOptions>> rows =
      under<OptionRow<MachineOptions>>(
          Heading::Output,
          {{{.name = "show|measure", .kind = OptionSpelling::Word}, readVerb},
           {{"machine", "NAME",
             "Show a machine that predictions can be for, or what a FILE.json "
             "says of one, in place of the core here"},
            option::ifGiven(readName)},
           {{"o", "FILE.json",
             "Write the figures to a file, to change and to give to --machine"},
            readOutput},
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

/// Ranks that are not like the rest: the same ones whatever the precision.
static llvm::json::Array othersToJson(const MachineModels &models) {
  llvm::json::Array all;
  const size_t kinds = models.begin()->second.others.size();
  for (size_t kind = 0; kind < kinds; ++kind) {
    const OtherRanks &first = models.begin()->second.others[kind];
    llvm::json::Object ofPrecision;
    for (const auto &[precision, model] : models) {
      llvm::json::Object figures;
      for (const auto &[figure, number] : model.others[kind].figures)
        figures[figure->name] = number;
      ofPrecision[nameOf(precision)] = std::move(figures);
    }
    all.push_back(llvm::json::Object{{"first", first.first},
                                     {"last", first.last},
                                     {"figures", std::move(ofPrecision)}});
  }
  return all;
}

namespace {

struct ShownMachine {
  std::string processor;
  MachineModels models;
  bool isHere = false;
  /// The file that keeps what was measured here; empty where none does.
  std::string measuredIn = {};
};

} // namespace

/// `51.2 GFLOP/s`, `5.0 us`
static std::string withUnit(double number, llvm::StringRef unit) {
  static constexpr std::pair<double, llvm::StringLiteral> prefixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}};
  for (const auto &[size, prefix] : prefixes)
    if (number >= size)
      return llvm::formatv("{0:F1} {1}{2}", number / size, prefix, unit);
  return llvm::formatv("{0:F2} n{1}", number * 1e9, unit);
}

static std::string textOf(const MachineFigure &figure, double number) {
  if (!figure.isCount)
    return withUnit(number, figure.unit);
  return number < 1e6 ? std::to_string(static_cast<int64_t>(number)) : "all";
}

/// Whether a precision makes no difference.
static bool areAlike(const MachineModels &models) {
  const MachineModel &first = models.begin()->second;
  return llvm::all_of(models, [&](const auto &each) {
    return llvm::all_of(machineFigures(), [&](const MachineFigure &figure) {
      return each.second.*figure.place == first.*figure.place;
    });
  });
}

static void print(llvm::raw_ostream &os, const MachineModels &models) {
  const bool alike = areAlike(models);
  for (const MachineFigure &figure : machineFigures()) {
    os << llvm::formatv("  {0,-18}", figure.name);
    for (const auto &[precision, model] : models) {
      if (!alike)
        os << llvm::formatv(" {0,5}", nameOf(precision));
      os << llvm::formatv(" {0,-14}", figure.isCount || figure.isKnown(model)
                                          ? textOf(figure, model.*figure.place)
                                          : "not known");
      if (alike)
        break;
    }
    os << " " << figure.meaning << "\n";
  }
  for (const auto &[precision, model] : models)
    for (const OtherRanks &ranks : model.others) {
      os << "  ranks " << ranks.first << " to " << ranks.last << ", "
         << nameOf(precision) << ":";
      for (const auto &[figure, number] : ranks.figures)
        os << " " << figure->name << " " << textOf(*figure, number);
      os << "\n";
    }
}

static llvm::json::Value toJson(const ShownMachine &machine) {
  llvm::json::Object all{{"processor", machine.processor},
                         {"figures", toJson(machine.models)}};
  if (machine.isHere) {
    all["cores"] = countCores();
    all["file"] = machine.measuredIn;
  }
  if (llvm::json::Array others = othersToJson(machine.models); !others.empty())
    all["ranks"] = std::move(others);
  return all;
}

static void print(llvm::raw_ostream &os, const ShownMachine &machine) {
  if (!machine.isHere) {
    os << machine.processor << "\n";
    print(os, machine.models);
    return;
  }
  os << "one core of " << machine.processor << ", of which there are "
     << countCores() << "\n";
  print(os, machine.models);
  if (machine.measuredIn.empty())
    os << "not kept, because there is no folder for it: each command measures "
          "anew\n";
  else
    os << "kept in " << machine.measuredIn << "\n";
}

static llvm::Expected<ShownMachine> machineOf(const MachineOptions &options) {
  if (options.name) {
    auto named = chooseMachine(*options.name);
    if (!named)
      return named.takeError();
    return ShownMachine{named->name, std::move(named->models)};
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
  return ShownMachine{machine.processor, std::move(machine.models),
                      /*isHere=*/true, machine.path};
}

llvm::Error pipewright::tool::runMachine(const MachineOptions &options) {
  if (llvm::Error error = checkOutput(options.output))
    return error;
  llvm::Expected<ShownMachine> machine = machineOf(options);
  if (!machine)
    return machine.takeError();
  const llvm::json::Value json = toJson(*machine);
  auto write = [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", json) << "\n";
  };
  if (options.asJson)
    write(llvm::outs());
  else
    print(llvm::outs(), *machine);
  if (options.output.empty())
    return llvm::Error::success();
  return writeOutput(options.output, write);
}
