//===- Options.cpp - What the user asked for ------------------------------===//
//
// Every value is checked here, before the model is even opened, and a bad one
// is named together with what would be right. The options themselves are rows
// in OptionRows.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

namespace cl = llvm::cl;

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

using option::fail;

llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count) {
  constexpr int64_t most = 1 << 20;
  if (text.getAsInteger(10, count) || count < 1 || count > most)
    return fail("--", option, " expects a whole number from 1 to ", most,
                ", but got '", text, "'");
  return llvm::Error::success();
}

std::string listOf(llvm::ArrayRef<llvm::StringRef> choices) {
  std::string list;
  for (auto [index, choice] : llvm::enumerate(choices)) {
    if (index > 0)
      list += index + 1 == choices.size() ? " or " : ", ";
    list += choice;
  }
  return list;
}

llvm::Error readChoice(llvm::StringRef option, llvm::StringRef text,
                       llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, text))
    return llvm::Error::success();
  return fail("--", option, " expects ", listOf(choices), ", but got '", text,
              "'");
}

namespace {
struct OptimizerDefaults {
  llvm::StringRef name;
  std::vector<std::pair<std::string, double>> numbers;
};
} // namespace

/// Names and defaults of torch.optim; SGD has no default learning rate there.
static const std::vector<OptimizerDefaults> &optimizers() {
  static const std::vector<OptimizerDefaults> list = {
      {"sgd", {{"lr", 0.01}, {"momentum", 0}, {"weight_decay", 0}}},
      {"adam",
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0}}},
      {"adamw",
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0.01}}},
      {"rmsprop",
       {{"lr", 0.01},
        {"alpha", 0.99},
        {"eps", 1e-8},
        {"momentum", 0},
        {"weight_decay", 0}}}};
  return list;
}

/// Whether a hyper-parameter may have a value.
static bool isInRange(llvm::StringRef key, double value) {
  if (key == "beta1" || key == "beta2" || key == "alpha")
    return value >= 0 && value < 1;
  return value >= 0 && value < 1e30;
}

llvm::Expected<OptimizerChoice> parseOptimizer(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  OptimizerChoice choice;
  choice.name = parts.front().trim().str();
  auto found = llvm::find_if(optimizers(), [&](const OptimizerDefaults &known) {
    return known.name == choice.name;
  });
  if (found == optimizers().end())
    return fail("--optimizer expects sgd, adam, adamw or rmsprop, but got '",
                choice.name, "'");
  choice.numbers = found->numbers;
  for (llvm::StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.trim().split('=');
    if (key == "nesterov" && choice.name == "sgd") {
      if (!value.empty() && value != "true" && value != "false")
        return fail("--optimizer expects nesterov to be true or false, but "
                    "got '",
                    value, "'");
      choice.nesterov = value != "false";
      continue;
    }
    auto number = llvm::find_if(
        choice.numbers, [&](const auto &known) { return known.first == key; });
    if (number == choice.numbers.end()) {
      std::string known;
      for (const auto &[name, standard] : choice.numbers)
        known += (known.empty() ? "" : ", ") + name;
      if (choice.name == "sgd")
        known += ", nesterov";
      return fail("optimizer ", choice.name, " has no '", key, "'; it has ",
                  known);
    }
    if (value.getAsDouble(number->second) || !isInRange(key, number->second))
      return fail("--optimizer expects ", key, " to be a number ",
                  isInRange(key, 1.0) ? "of at least 0" : "from 0 to below 1",
                  ", but got '", value, "'");
  }
  auto numberOf = [&](llvm::StringRef key) {
    for (const auto &[name, value] : choice.numbers)
      if (name == key)
        return value;
    return 0.0;
  };
  if (choice.nesterov && numberOf("momentum") == 0)
    return fail("--optimizer expects momentum above 0 with nesterov");
  return choice;
}

//===----------------------------------------------------------------------===//
// All options
//===----------------------------------------------------------------------===//

OptionSet::OptionSet(const VerbCommands &commands)
    : values(optionRows(), commands),
      model(cl::Positional, cl::desc("MODEL.onnx"), cl::cat(compileCategory()),
            InCommands{commands, Models}) {}

bool isTrainOption(llvm::StringRef word, bool &takesNext) {
  takesNext = false;
  if (!word.consume_front("-"))
    return false;
  word.consume_front("-");
  for (const OptionRow &row : optionRows())
    if ((row.verbs & Train) && row.name == word.split('=').first) {
      takesNext = row.kind != OptionRow::Flag && !word.contains('=');
      return true;
    }
  return false;
}

llvm::Expected<CompileOptions>
OptionSet::check(llvm::StringRef schedule) const {
  if (model.empty())
    return fail("expects a model: pipewright COMMAND MODEL.onnx ...");
  CompileOptions options;
  options.import.modelPath = model;
  const OptionValues given =
      schedule.empty() ? values : values.with("schedule", schedule);
  for (const OptionRow &row : optionRows())
    if (row.read)
      if (llvm::Error error = row.read(given, options))
        return std::move(error);
  for (const OptionRow &row : optionRows())
    if (auto value = row.record(row, given, options))
      options.given[row.key] = std::move(*value);
  return options;
}

} // namespace pipewright::tool
