//===- MachineCommand.cpp - What predictions are made for -----------------===//

#include "tools/pipewright/MachineCommand.h"

#include "passes/planning/MachineFile.h"
#include "passes/planning/NamedMachines.h"
#include "support/Text.h"
#include "tools/pipewright/ChosenMachine.h"
#include "tools/pipewright/OutputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace pipewright;
using namespace pipewright::tool;

static llvm::Error readVerb(const OptionSpelling &row,
                            const OptionValues &given,
                            MachineOptions &options) {
  using Verb = MachineOptions::Verb;
  static constexpr std::pair<llvm::StringLiteral, Verb> verbs[] = {
      {"show", Verb::Show}, {"measure", Verb::Measure}, {"list", Verb::List}};
  std::vector<llvm::StringRef> words;
  for (const auto &[word, verb] : verbs) {
    words.push_back(word);
    if (word != given[row.name])
      continue;
    options.verb = verb;
    return llvm::Error::success();
  }
  return option::fail("machine expects ", text::listOf(words), ", but got '",
                      text::shortened(given[row.name], 64), "'");
}

static llvm::Error readName(llvm::StringRef name, llvm::StringRef text,
                            MachineOptions &options) {
  options.name = text.str();
  if (options.verb == MachineOptions::Verb::Show)
    return llvm::Error::success();
  return option::fail("--", name,
                      " is for machine show: machine measure "
                      "measures the one here, and machine list "
                      "lists all names");
}

static llvm::Error readOutput(const OptionSpelling &row,
                              const OptionValues &given,
                              MachineOptions &options) {
  options.output = given[row.name].str();
  if (given.isGiven(row.name) && options.verb == MachineOptions::Verb::List)
    return option::fail("-", row.name,
                        " is for machine show and measure: "
                        "machine list has no figures");
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
          {{{.name = "show|measure|list", .kind = OptionSpelling::Word},
            readVerb},
           {{"machine", "NAME",
             "Show a machine that predictions can be for (pipewright machine "
             "list), or what a FILE.json says of one, in place of the core "
             "here"},
            option::ifGiven(readName)},
           {{"o", "FILE.json",
             "Write the figures to a file, to change and to give to --machine"},
            readOutput},
           {{.name = "json",
             .help = "Print the figures, or the list, as JSON",
             .kind = OptionSpelling::Flag},
            option::flag(&MachineOptions::asJson)}});
  return rows;
}

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
      {1e12, "T"}, {1e9, "G"},  {1e6, "M"}, {1, ""},
      {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  for (const auto &[size, prefix] : prefixes)
    if (number >= size)
      return llvm::formatv("{0:F1} {1}{2}", number / size, prefix, unit);
  return llvm::formatv("{0:F1} p{1}", number * 1e12, unit);
}

static std::string textOf(const MachineFigure &figure, double number) {
  if (!figure.isCount)
    return withUnit(number, figure.unit);
  return number < 1e6 ? std::to_string(static_cast<int64_t>(number)) : "all";
}

static void print(llvm::raw_ostream &os, const MachineModels &models) {
  for (const MachineFigure &figure : machineFigures()) {
    const double first = models.begin()->second.*figure.place;
    // Whether precisions make no difference.
    const bool isOne = llvm::all_of(models, [&](const auto &each) {
      return each.second.*figure.place == first;
    });
    os << llvm::formatv("  {0,-18}", figure.name);
    for (const auto &[precision, model] : models) {
      if (!isOne)
        os << " " << nameOf(precision);
      os << " "
         << (figure.isCount || model.*figure.place < MachineModel::unknownMemory
                 ? textOf(figure, model.*figure.place)
                 : "not known");
      if (!figure.isCount && !figure.isKnown(model) &&
          model.*figure.place < MachineModel::unknownMemory)
        os << " unless said";
      if (isOne)
        break;
      os << (precision == models.rbegin()->first ? "" : ",");
    }
    os << ": " << figure.meaning << "\n";
  }
  for (const auto &[precision, model] : models)
    for (const OtherRanks &ranks : model.others) {
      os << "  rank" << (ranks.first == ranks.last ? " " : "s ") << ranks.first;
      if (ranks.first != ranks.last)
        os << " to " << ranks.last;
      os << ", " << nameOf(precision) << ":";
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
  if (options.name && *options.name != kMachineHere) {
    auto named = chooseMachine(*options.name);
    if (!named)
      return named.takeError();
    return ShownMachine{named->name, std::move(named->models)};
  }
  MeasuredMachine machine;
  if (options.verb == MachineOptions::Verb::Measure) {
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

static void printList(bool asJson) {
  llvm::raw_ostream &os = llvm::outs();
  llvm::json::Array all;
  for (const NamedMachine &machine : namedMachines()) {
    std::vector<llvm::StringRef> precisions;
    for (Precision precision : machine.precisions)
      precisions.push_back(nameOf(precision));
    if (!asJson)
      os << llvm::formatv("{0,-12} {1,-15} {2}\n", machine.name,
                          llvm::join(precisions, ", "), machine.summary);
    all.push_back(llvm::json::Object{{"name", machine.name},
                                     {"precisions", precisions},
                                     {"summary", machine.summary}});
  }
  if (asJson)
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(all))) << "\n";
  else
    os << llvm::formatv("{0,-12} {1,-15} {2}\n", kMachineHere, "f32, bf16",
                        "a core of this machine, as pipewright machine measure "
                        "has measured it");
}

llvm::Error pipewright::tool::runMachine(const MachineOptions &options) {
  if (options.verb == MachineOptions::Verb::List) {
    printList(options.asJson);
    return llvm::Error::success();
  }
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
