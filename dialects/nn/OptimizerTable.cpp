//===- OptimizerTable.cpp - All optimizers, row by row --------------------===//
//
// Names and defaults are those of torch.optim, where SGD has no default
// learning rate; LAMB, which is not there, has those of Adam with the decay of
// AdamW, and Lion those of its authors. What Muon takes as no matrix it updates
// as AdamW does. The formulas stand in README.md.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/OptimizerTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static HyperParameter learningRate(double defaultValue) {
  return {"lr", defaultValue, HyperRange::AtLeastZero, /*perStep=*/true};
}

static HyperParameter fraction(llvm::StringRef name, double defaultValue) {
  return {name, defaultValue, HyperRange::BelowOne};
}

/// What kernels get at each step; the correction of a beta that an optimizer
/// does not have is 1.
static llvm::SmallVector<StepScalar> usualScalars() {
  return {{"LearningRate"},
          {"BiasCorrection", "beta1"},
          {"BiasCorrection", "beta2"},
          {"GradientScale"}};
}

static Optimizer adamLike(llvm::StringRef name, UpdateRule rule,
                          Granularity granularity, double weightDecay) {
  return {name,
          rule,
          granularity,
          {learningRate(1e-3),
           fraction("beta1", 0.9),
           fraction("beta2", 0.999),
           {"eps", 1e-8},
           {"weight_decay", weightDecay}},
          {{"m"}, {"v"}},
          usualScalars()};
}

llvm::ArrayRef<Optimizer> pipewright::nn::optimizers() {
  static const Optimizer table[] = {
      {"sgd",
       UpdateRule::Sgd,
       Granularity::Flat,
       {learningRate(0.01),
        {"momentum", 0},
        {"weight_decay", 0},
        {"nesterov", 0, HyperRange::Flag, /*perStep=*/false,
         /*needs=*/"momentum"}},
       {{"momentum", /*onlyWith=*/"momentum"}},
       usualScalars()},
      adamLike("adam", UpdateRule::Adam, Granularity::Flat, 0),
      adamLike("adamw", UpdateRule::DecoupledAdam, Granularity::Flat, 0.01),
      {"rmsprop",
       UpdateRule::Rmsprop,
       Granularity::Flat,
       {learningRate(0.01),
        fraction("alpha", 0.99),
        {"eps", 1e-8},
        {"momentum", 0},
        {"weight_decay", 0}},
       {{"v"}, {"momentum", /*onlyWith=*/"momentum"}},
       usualScalars()},
      adamLike("lamb", UpdateRule::Lamb, Granularity::Weight, 0.01),
      {"lion",
       UpdateRule::Lion,
       Granularity::Flat,
       {learningRate(1e-4),
        fraction("beta1", 0.9),
        fraction("beta2", 0.99),
        {"weight_decay", 0}},
       {{"m"}},
       {{"LearningRate"}, {"GradientScale"}}},
      {"muon",
       UpdateRule::Muon,
       Granularity::Matrix,
       {learningRate(1e-3),
        fraction("momentum", 0.95),
        {"weight_decay", 0.1},
        {"nesterov", 1, HyperRange::Flag},
        {"match_rms", 0, HyperRange::Flag},
        {"adamw_lr_factor", 1},
        fraction("beta1", 0.9),
        fraction("beta2", 0.999),
        {"eps", 1e-8},
        {"adamw_weight_decay", 0.01}},
       {{"m"}, {"v", /*onlyWith=*/"", /*isOfMatrices=*/false}},
       usualScalars()},
  };
  return table;
}

//===----------------------------------------------------------------------===//
// Questions to it
//===----------------------------------------------------------------------===//

template <class... Parts>
static llvm::Error fail(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(text);
}

int64_t Optimizer::positionOf(llvm::StringRef kind, llvm::StringRef of) const {
  for (auto [position, scalar] : llvm::enumerate(scalars))
    if (scalar.kind == kind && (of.empty() || scalar.of == of))
      return position;
  llvm_unreachable("a formula reads the scalars of its row");
}

const Optimizer *pipewright::nn::findOptimizer(llvm::StringRef name) {
  auto *found = llvm::find_if(
      optimizers(), [&](const Optimizer &row) { return row.name == name; });
  return found == optimizers().end() ? nullptr : found;
}

std::string pipewright::nn::optimizerNames() {
  std::string names;
  for (const Optimizer &row : optimizers())
    names += (names.empty()                  ? ""
              : &row == &optimizers().back() ? " or "
                                             : ", ") +
             row.name.str();
  return names;
}

llvm::StringRef pipewright::nn::describeRange(HyperRange range) {
  switch (range) {
  case HyperRange::AtLeastZero:
    return "a number of at least 0";
  case HyperRange::BelowOne:
    return "a number from 0 to below 1";
  case HyperRange::Flag:
    return "true or false";
  }
  llvm_unreachable("all ranges are listed");
}

static bool isInRange(const HyperParameter &parameter, double value) {
  switch (parameter.range) {
  case HyperRange::AtLeastZero:
    return value >= 0 && value < 1e30;
  case HyperRange::BelowOne:
    return value >= 0 && value < 1;
  case HyperRange::Flag:
    return value == 0 || value == 1;
  }
  llvm_unreachable("all ranges are listed");
}

OptimizerChoice::OptimizerChoice(const Optimizer &row) : row(&row) {
  for (const HyperParameter &parameter : row.hyperParameters)
    values.push_back(parameter.defaultValue);
}

double OptimizerChoice::get(llvm::StringRef name) const {
  for (auto [parameter, value] : llvm::zip_equal(row->hyperParameters, values))
    if (parameter.name == name)
      return value;
  return 0;
}

llvm::Error OptimizerChoice::set(llvm::StringRef name, double newValue) {
  std::string known;
  for (auto [parameter, value] :
       llvm::zip_equal(row->hyperParameters, values)) {
    if (parameter.name == name) {
      value = newValue;
      return llvm::Error::success();
    }
    known += (known.empty() ? "" : ", ") + parameter.name.str();
  }
  return fail("optimizer ", row->name, " has no '", name, "'; it has ", known);
}

llvm::Error OptimizerChoice::check() const {
  for (auto [parameter, value] :
       llvm::zip_equal(row->hyperParameters, values)) {
    if (!isInRange(parameter, value))
      return fail("expects ", parameter.name, " to be ",
                  describeRange(parameter.range), ", but got ", value);
    if (value != 0 && !parameter.needs.empty() && get(parameter.needs) == 0)
      return fail("expects ", parameter.needs, " above 0 with ",
                  parameter.name);
  }
  return llvm::Error::success();
}

llvm::SmallVector<OptimizerState> OptimizerChoice::keptStates() const {
  llvm::SmallVector<OptimizerState> kept;
  for (const OptimizerState &state : row->states)
    if (state.onlyWith.empty() || get(state.onlyWith) != 0)
      kept.push_back(state);
  return kept;
}

llvm::SmallVector<llvm::StringRef> OptimizerChoice::states() const {
  return llvm::map_to_vector(
      keptStates(), [](const OptimizerState &state) { return state.name; });
}

OptimizerChoice OptimizerChoice::compiledIn() const {
  OptimizerChoice fixed = *this;
  for (auto [parameter, value] :
       llvm::zip_equal(row->hyperParameters, fixed.values))
    if (parameter.perStep)
      value = parameter.defaultValue;
  return fixed;
}

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

/// Reads the text behind `key=`; a flag may do without.
static bool readValue(const HyperParameter &parameter, llvm::StringRef text,
                      double &value) {
  if (parameter.range != HyperRange::Flag)
    return !text.getAsDouble(value) && isInRange(parameter, value);
  value = text != "false";
  return text.empty() || text == "true" || text == "false";
}

llvm::Expected<OptimizerChoice>
pipewright::nn::parseOptimizer(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  llvm::StringRef name = parts.front().trim();
  const Optimizer *row = findOptimizer(name);
  if (!row)
    return fail("--optimizer expects ", optimizerNames(), ", but got '", name,
                "'");
  OptimizerChoice choice(*row);
  for (llvm::StringRef part : llvm::drop_begin(parts)) {
    auto [key, given] = part.trim().split('=');
    auto *parameter = llvm::find_if(
        row->hyperParameters,
        [key = key](const HyperParameter &known) { return known.name == key; });
    double value = 0;
    if (parameter != row->hyperParameters.end() &&
        !readValue(*parameter, given, value))
      return fail("--optimizer expects ", key, " to be ",
                  describeRange(parameter->range), ", but got '", given, "'");
    if (llvm::Error error = choice.set(key, value))
      return error;
  }
  if (llvm::Error error = choice.check())
    return fail("--optimizer ", llvm::toString(std::move(error)));
  return choice;
}
