//===- WeightRoles.cpp - Which weights are trained ------------------------===//
//
// Runs over the imported module, where every use of a weight is known.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/WeightRoles.h"

#include "dialects/nn/NNWeightNames.h"
#include "frontends/onnx/BufferTables.h"

using namespace mlir;
using pipewright::nn::WeightRole;

namespace pipewright::frontend {

namespace {

/// What is known about a weight before the user is asked.
struct Decision {
  WeightRole role;
  /// Why it is a constant, where it is one.
  StringRef reason;
};

class RoleAssignment {
public:
  RoleAssignment(GraphImporter &graph, const ImportOptions &options)
      : graph(graph), options(options), notes(graph.metadata),
        tables(graph.function, graph.weights) {}

  LogicalResult run();

private:
  void assign(nn::WeightOp weight);
  Decision decide(nn::WeightOp weight, StringRef name);
  Decision decideFolded(StringRef name, ArrayRef<std::string> sources);
  LogicalResult checkPatterns();
  void warn();

  GraphImporter &graph;
  const ImportOptions &options;
  const ExporterMetadata &notes;
  BufferTables tables;
  std::vector<std::string> names;
  int64_t trained = 0, untrained = 0;
  /// Weights that were computed from parameters, and an example.
  int64_t computed = 0;
  std::string computedExample;
};

} // namespace

static Decision decisionFor(ExportedKind kind) {
  switch (kind) {
  case ExportedKind::Parameter:
    return {WeightRole::Parameter, ""};
  case ExportedKind::Buffer:
    return {WeightRole::Constant, "a buffer of the module"};
  case ExportedKind::Constant:
    return {WeightRole::Constant, "a constant of the module"};
  }
  llvm_unreachable("all kinds are listed");
}

Decision RoleAssignment::decideFolded(StringRef name,
                                      ArrayRef<std::string> sources) {
  std::string parameter;
  for (const std::string &source : sources) {
    auto tensor = notes.tensors.find(source);
    if (tensor != notes.tensors.end() &&
        tensor->second == ExportedKind::Parameter)
      parameter = source;
  }
  if (parameter.empty())
    return {WeightRole::Constant, "computed from no parameter at export"};
  // One parameter and nothing else was transposed or reshaped.
  if (sources.size() > 1 && computed++ == 0)
    computedExample = "'" + name.str() + "' from '" + parameter + "'";
  return {WeightRole::Parameter, ""};
}

Decision RoleAssignment::decide(nn::WeightOp weight, StringRef name) {
  auto noted = notes.initializers.find(name);
  if (noted != notes.initializers.end()) {
    const InitializerNotes &note = noted->second;
    return note.kind ? decisionFor(*note.kind)
                     : decideFolded(name, *note.foldedFrom);
  }
  auto tensor = notes.tensors.find(name);
  if (tensor != notes.tensors.end())
    return decisionFor(tensor->second);
  if (weight.getRole() != WeightRole::Parameter)
    return {weight.getRole(), "a mask"};
  StringRef table = tables.describe(weight, name);
  return {table.empty() ? WeightRole::Parameter : WeightRole::Constant, table};
}

void RoleAssignment::assign(nn::WeightOp weight) {
  StringRef name = weight.getSymName();
  if (auto location = dyn_cast<NameLoc>(weight.getLoc()))
    name = location.getName();
  names.push_back(nn::fileNameOf(weight).str());
  // A transposed copy also answers to its parameter's name.
  SmallVector<StringRef> aliases{nn::fileNameOf(weight), name};
  auto noted = notes.initializers.find(name);
  if (noted != notes.initializers.end() && noted->second.foldedFrom)
    for (const std::string &source : *noted->second.foldedFrom)
      if (notes.tensors.contains(source))
        aliases.push_back(source);
  std::optional<RoleRule::Kind> wish = graph.patterns.match(aliases);

  if (weight.getRole() == WeightRole::State ||
      !weight.getTensorType().getElementType().isF32())
    return;
  Decision decision = decide(weight, name);
  if (wish == RoleRule::Train)
    decision = {WeightRole::Parameter, ""};
  else if (wish == RoleRule::Freeze && decision.role == WeightRole::Parameter)
    decision = {WeightRole::Frozen, ""};
  ++(decision.role == WeightRole::Parameter ? trained : untrained);
  weight.setRole(decision.role);
  if (decision.role == WeightRole::Constant)
    weight->setAttr("nn.reason",
                    StringAttr::get(&graph.context, decision.reason));
}

LogicalResult RoleAssignment::checkPatterns() {
  if (const RoleRule *unused = graph.patterns.firstUnused()) {
    auto error = graph.error() << unused->option() << " '" << unused->pattern
                               << "' matches no weight of the model";
    const char *separator = "; near it: '";
    for (const std::string &near : nearNames(unused->pattern, names)) {
      error << separator << near << "'";
      separator = ", '";
    }
    return error;
  }
  if (options.requireLoss && trained == 0 && untrained > 0)
    return graph.error()
           << "nothing is left to train: none of its " << untrained
           << (untrained == 1 ? " weight is" : " weights is")
           << " a parameter that is not frozen (--train REGEX lets weights "
              "train)";
  return success();
}

void RoleAssignment::warn() {
  if (computed)
    graph.warn(std::to_string(computed) +
               (computed == 1 ? " weight was" : " weights were") +
               " computed when the model was exported (" + computedExample +
               (computed == 1 ? "" : ", ...") +
               "): trained as in the file, not as in the module, where that "
               "differs");
  if (notes.ignored)
    graph.warn(std::to_string(notes.ignored) +
               (notes.ignored == 1 ? " note" : " notes") +
               " of the exporter (the first at " + notes.firstIgnored +
               ") cannot be read and are left out: what depends on them is "
               "decided without");
}

LogicalResult RoleAssignment::run() {
  for (auto weight : graph.module->getBody()->getOps<nn::WeightOp>())
    assign(weight);
  warn();
  return checkPatterns();
}

LogicalResult assignRoles(GraphImporter &graph, const ImportOptions &options) {
  return RoleAssignment(graph, options).run();
}

} // namespace pipewright::frontend
