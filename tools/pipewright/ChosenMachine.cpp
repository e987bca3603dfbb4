//===- ChosenMachine.cpp - A machine that the user names ------------------===//

#include "tools/pipewright/ChosenMachine.h"

#include "passes/planning/MachineFile.h"
#include "passes/planning/NamedMachines.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "support/NearWords.h"
#include "support/Text.h"
#include "tools/pipewright/OptionTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace pipewright::tool {

static llvm::Error fail(llvm::StringRef path, const llvm::Twine &what) {
  return option::fail("--machine: '", text::printable(path), "'", what.str(),
                      ": expects what pipewright machine show -o writes");
}

/// A key of `object` that nothing reads, as it may be misspelt; empty where all
/// are among `known`.
static std::string findUnknown(const llvm::json::Object &object,
                               llvm::ArrayRef<llvm::StringRef> known,
                               const llvm::Twine &where) {
  std::vector<llvm::StringRef> unknown;
  for (const auto &[key, value] : object)
    if (!llvm::is_contained(known, llvm::StringRef(key)))
      unknown.push_back(key);
  if (unknown.empty())
    return "";
  // In the same order whatever the object has.
  llvm::sort(unknown);
  return (" has '" + text::shortened(unknown[0]) + "'" + where +
          ", which nothing reads" + text::didYouMean(unknown[0], known))
      .str();
}

/// The same of the precisions and their figures.
static std::string findUnknownFigure(const llvm::json::Object &figures) {
  std::vector<llvm::StringRef> precisions, names;
  for (Precision precision : allPrecisions())
    precisions.push_back(nameOf(precision));
  for (const MachineFigure &figure : machineFigures())
    names.push_back(figure.name);
  std::string problem = findUnknown(figures, precisions, " in 'figures'");
  for (llvm::StringRef precision : precisions)
    if (const llvm::json::Object *own = figures.getObject(precision);
        own && problem.empty())
      problem = findUnknown(*own, names, " of " + precision);
  return problem;
}

/// What is wrong with a figure of a precision; empty where it was read.
static std::string readFigure(const llvm::json::Object &figures,
                              const MachineFigure &figure,
                              const llvm::Twine &where, double &place) {
  const llvm::json::Value *value = figures.get(figure.name);
  std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
  auto expects = [&](const llvm::Twine &what) {
    const std::string found =
        value ? ", but " + text::shortened(llvm::formatv("{0}", *value).str())
              : "";
    return (" has no " + what + " for '" + figure.name + "' of " + where +
            found)
        .str();
  };
  if (!number || !std::isfinite(*number) || !(*number > 0))
    return expects("number above 0");
  if (figure.isCount && *number != std::floor(*number))
    return expects("whole number");
  constexpr double least = 1e-18, most = 1e24;
  if (!figure.isCount && (*number < least || *number > most))
    return expects(
        llvm::formatv("number from {0:e0} to {1:e0}", least, most).str());
  place = *number;
  return "";
}

/// What is wrong with some ranks that are not like the rest; empty where they
/// were read: `{"first": 4, "last": 7, "figures": {"f32": {"memory": 8e9}}}`.
static std::string readRanksAlike(const llvm::json::Object &object,
                                  Precision precision, OtherRanks &ranks) {
  constexpr int64_t places = OtherRanks::mostPlaces;
  std::optional<int64_t> first = object.getInteger("first"),
                         last = object.getInteger("last");
  if (!first || !last || *first < 0 || *last < *first || *last >= places)
    return llvm::formatv(" has 'ranks' without whole numbers 'first' and "
                         "'last', from 0 to {0}, first not above last",
                         places - 1);
  std::tie(ranks.first, ranks.last) = std::pair(*first, *last);
  const std::string name = llvm::formatv(
      *first == *last ? "rank {0}" : "ranks {0} to {1}", *first, *last);
  const llvm::json::Object *all = object.getObject("figures");
  const llvm::json::Object *figures =
      all ? all->getObject(nameOf(precision)) : nullptr;
  if (std::string problem =
          findUnknown(object, {"first", "last", "figures"}, " in 'ranks'");
      !problem.empty())
    return problem;
  if (!figures || figures->empty())
    return (" has no figures of " + nameOf(precision) + " for " + name).str();
  for (const auto &[word, value] : *figures) {
    const MachineFigure *figure = findMachineFigure(word);
    if (!figure || !figure->isOfRank)
      return " has '" + text::shortened(word) + "' for " + name +
             ", which is no figure of single ranks";
    double number = 0;
    if (std::string problem = readFigure(
            *figures, *figure, nameOf(precision) + ", " + name, number);
        !problem.empty())
      return problem;
    ranks.figures.emplace_back(figure, number);
  }
  // In the order of the figures, not of the file.
  llvm::sort(ranks.figures);
  return "";
}

static std::string readRanks(const llvm::json::Value &value,
                             Precision precision, MachineModel &machine) {
  const llvm::json::Array *all = value.getAsArray();
  if (!all)
    return " has 'ranks' that are no list";
  constexpr size_t most = OtherRanks::mostKinds;
  if (all->size() > most)
    return llvm::formatv(" has {0} kinds of 'ranks', more than {1}",
                         all->size(), most);
  for (const llvm::json::Value &each : *all) {
    const llvm::json::Object *object = each.getAsObject();
    if (!object)
      return " has 'ranks' that are no list of objects";
    OtherRanks ranks;
    if (std::string problem = readRanksAlike(*object, precision, ranks);
        !problem.empty())
      return problem;
    for (const OtherRanks &other : machine.others)
      if (ranks.overlaps(other))
        return llvm::formatv(" has rank {0} twice in 'ranks'",
                             std::max(ranks.first, other.first));
    machine.others.push_back(std::move(ranks));
  }
  return "";
}

/// The whole file, whose 'figures' are an object.
static llvm::Expected<llvm::json::Object> readFile(llvm::StringRef path) {
  llvm::Expected<FileBuffer> file = readTextFile(path);
  if (!file)
    return fail(path, " " + llvm::toString(file.takeError()));
  llvm::Expected<llvm::json::Value> json = parseJson((*file)->getBuffer());
  if (!json)
    return fail(path, ": " + llvm::toString(json.takeError()));
  llvm::json::Object *all = json->getAsObject();
  if (!all || !all->getObject("figures"))
    return fail(path, " has no 'figures'");
  if (std::string key = findRepeatedKey((*file)->getBuffer()); !key.empty())
    return fail(path, " has '" + text::shortened(key) + "' twice");
  std::string problem =
      findUnknown(*all, {"figures", "ranks", "processor", "cores", "file"}, "");
  if (problem.empty())
    problem = findUnknownFigure(*all->getObject("figures"));
  if (const llvm::json::Value *name = all->get("processor");
      problem.empty() && name && !name->getAsString())
    problem = " has no text for 'processor', but " +
              text::shortened(llvm::formatv("{0}", *name).str());
  if (!problem.empty())
    return fail(path, problem);
  return std::move(*all);
}

static llvm::Expected<ChosenMachine> readModel(llvm::StringRef path,
                                               const llvm::json::Object &all,
                                               Precision precision) {
  const llvm::json::Object *own =
      all.getObject("figures")->getObject(nameOf(precision));
  if (!own)
    return fail(path, " has no figures of " + nameOf(precision));
  ChosenMachine machine;
  machine.name = text::shortened(
      all.getString("processor").value_or(llvm::StringRef(path)));
  for (const MachineFigure &figure : machineFigures()) {
    if (figure.isOptional && !own->get(figure.name))
      continue;
    if (std::string problem = readFigure(*own, figure, nameOf(precision),
                                         machine.model.*figure.place);
        !problem.empty())
      return fail(path, problem);
  }
  if (const llvm::json::Value *ranks = all.get("ranks"))
    if (std::string problem = readRanks(*ranks, precision, machine.model);
        !problem.empty())
      return fail(path, problem);
  return machine;
}

static std::string listOf(const MachineModels &models) {
  std::vector<llvm::StringRef> words;
  for (const auto &[precision, model] : models)
    words.push_back(nameOf(precision));
  return text::listOf(words);
}

/// With figures of the precisions that it has; in the file, of that alone which
/// is asked for.
static llvm::Expected<ChosenMachines>
readMachines(llvm::StringRef path, std::optional<Precision> wanted) {
  llvm::Expected<llvm::json::Object> file = readFile(path);
  if (!file)
    return file.takeError();
  ChosenMachines machines;
  for (Precision precision : allPrecisions()) {
    if (wanted ? precision != *wanted
               : !file->getObject("figures")->get(nameOf(precision)))
      continue;
    llvm::Expected<ChosenMachine> one = readModel(path, *file, precision);
    if (!one)
      return one.takeError();
    machines.name = one->name;
    machines.models[precision] = std::move(one->model);
  }
  if (machines.models.empty())
    return fail(path, " has no figures of f32, tf32 or bf16");
  return machines;
}

static llvm::Expected<ChosenMachines>
findMachines(llvm::StringRef text, std::optional<Precision> wanted) {
  if (text.ends_with(".json"))
    return readMachines(text, wanted);
  if (text == kMachineHere)
    return ChosenMachines{measuredMachine().processor,
                          measuredMachine().models};
  ChosenMachines machines{text.str(), machinesNamed(text)};
  if (machines.models.empty())
    return option::fail("--machine expects ", namesOfMachines(),
                        ", one of these for a precision that it has "
                        "(h100-bf16) or with hosts of N ranks (h100xN), here, "
                        "or a FILE.json that pipewright machine show -o has "
                        "written, but got '",
                        text::shortened(text), "'");
  return machines;
}

llvm::Expected<ChosenMachine> chooseMachine(llvm::StringRef text,
                                            Precision precision) {
  llvm::Expected<ChosenMachines> machines = findMachines(text, precision);
  if (!machines)
    return machines.takeError();
  auto own = machines->models.find(precision);
  if (own == machines->models.end()) {
    const llvm::StringRef family = text.rsplit('-').first;
    const bool isOther = machinesNamed(family).count(precision) > 0;
    return option::fail(
        "--machine ", text, " has the figures of ", listOf(machines->models),
        ", but --precision is ", nameOf(precision), "; give --precision ",
        nameOf(machines->models.begin()->first),
        isOther ? ", or --machine " + family.str() : std::string());
  }
  ChosenMachine machine{machines->name, std::move(own->second)};
  if (machine.model.isUneven())
    machine.name += " (some ranks differ)";
  return machine;
}

llvm::Error readLinks(llvm::StringRef text,
                      std::optional<ChosenMachine> &machine) {
  // A file may say of some ranks alone what they are with one precision.
  for (Precision precision : allPrecisions()) {
    llvm::Expected<ChosenMachine> one = chooseMachine(text, precision);
    if (one) {
      machine = std::move(*one);
      return llvm::Error::success();
    }
    llvm::consumeError(one.takeError());
  }
  // Why not, of whatever precision.
  llvm::Expected<ChosenMachines> all = chooseMachine(text);
  if (!all)
    return all.takeError();
  machine = ChosenMachine{std::move(all->name),
                          std::move(all->models.begin()->second)};
  return llvm::Error::success();
}

llvm::Expected<ChosenMachines> chooseMachine(llvm::StringRef text) {
  return findMachines(text, std::nullopt);
}

} // namespace pipewright::tool
