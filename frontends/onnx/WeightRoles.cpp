//===- WeightRoles.cpp - Which weights are trained ------------------------===//
//
// Runs over the imported module, where every use of a weight is known.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/WeightRoles.h"

#include "dialects/nn/NNInference.h"
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
  LogicalResult assign(nn::WeightOp weight);
  bool carriesBatch(nn::WeightOp weight, StringRef name) const;
  std::string parametersOf(StringRef name) const;
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
    return {weight.getRole(),
            graph.isInitializer(name) ? "a mask" : "computed from constants"};
  StringRef table = graph.untrainedTables.lookup(name);
  if (table.empty())
    table = tables.describe(weight, name);
  return {table.empty() ? WeightRole::Parameter : WeightRole::Constant, table};
}

/// Whether all that reads a weight has more dimensions than it: none of its own
/// lies along the batch then, as those of a scale of channels.
static bool isStretchedToHigherRank(func::FuncOp model, nn::WeightOp weight) {
  const int64_t rank = weight.getTensorType().getRank();
  return llvm::all_of(model.getOps<nn::ParameterOp>(), [&](nn::ParameterOp p) {
    return p.getWeight() != weight.getSymName() ||
           llvm::all_of(p->getUsers(), [&](Operation *user) {
             return user->getNumResults() == 1 &&
                    cast<RankedTensorType>(user->getResult(0).getType())
                            .getRank() > rank;
           });
  });
}

/// Whether each `period` bytes are one slice of `slice` bytes over and over.
static bool repeatsSlices(ArrayRef<char> bytes, size_t period, size_t slice) {
  for (size_t begin = 0; begin < bytes.size(); begin += period)
    for (size_t at = begin + slice; at < begin + period; at += slice)
      if (bytes.slice(begin, slice) != bytes.slice(at, slice))
        return false;
  return true;
}

/// Whether a weight was computed at export from parameters and a whole batch of
/// something, such as the first state of a recurrent layer: a dimension is made
/// of as many slices as the batch has samples, which are all the same.
bool RoleAssignment::carriesBatch(nn::WeightOp weight, StringRef name) const {
  auto noted = notes.initializers.find(name);
  if (noted == notes.initializers.end() || noted->second.kind ||
      noted->second.foldedFrom->size() < 2 ||
      graph.function.getNumArguments() == 0)
    return false;
  auto input = cast<RankedTensorType>(graph.function.getArgumentTypes()[0]);
  if (input.getRank() == 0)
    return false;
  const int64_t batch =
      graph.batchChange ? graph.batchChange->original : input.getDimSize(0);
  ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  ArrayRef<char> bytes = graph.weights.lookup(weight.getSymName());
  for (auto [axis, size] : llvm::enumerate(shape)) {
    if (size % batch || batch < 2 || bytes.empty())
      continue;
    const size_t inner = elementCount(shape.drop_front(axis + 1)) * 4;
    // What does not differ within a sample tells nothing.
    if (size != batch && repeatsSlices(bytes, inner * size, inner))
      continue;
    if (repeatsSlices(bytes, inner * size, inner * size / batch))
      return !isStretchedToHigherRank(graph.function, weight);
  }
  return false;
}

/// The parameters that an initializer was computed from, for people to read.
std::string RoleAssignment::parametersOf(StringRef name) const {
  std::string text;
  for (const std::string &source :
       *notes.initializers.find(name)->second.foldedFrom) {
    auto tensor = notes.tensors.find(source);
    if (tensor != notes.tensors.end() &&
        tensor->second == ExportedKind::Parameter)
      text += (text.empty() ? "'" : ", '") + source + "'";
  }
  return text;
}

LogicalResult RoleAssignment::assign(nn::WeightOp weight) {
  StringRef name = weight.getSymName();
  if (auto location = dyn_cast<NameLoc>(weight.getLoc()))
    name = location.getName();
  // A large constant that the file does not have: an operator is made of it.
  if (weight.getRole() == WeightRole::Constant && !graph.isRead(name)) {
    ++untrained;
    weight->setAttr("nn.reason",
                    StringAttr::get(&graph.context, "computed of sizes"));
    return success();
  }
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
    return success();
  Decision decision = decide(weight, name);
  if (wish == RoleRule::Train)
    decision = {WeightRole::Parameter, ""};
  else if (decision.role == WeightRole::Parameter &&
           (wish == RoleRule::Freeze ||
            llvm::any_of(aliases, [&](StringRef alias) {
              return notes.frozen.contains(alias);
            })))
    decision = {WeightRole::Frozen, ""};
  if (decision.role == WeightRole::Parameter && wish != RoleRule::Train &&
      carriesBatch(weight, name))
    return graph.error()
           << "initializer '" << name << "' of shape "
           << nn::formatList(weight.getTensorType().getShape())
           << " was computed from " << parametersOf(name)
           << " when the model was exported, for each sample of the batch: it "
              "cannot train. Export the model with optimize=False, or with "
              "Pipewright's tools/export.py; --freeze leaves it as it is";
  ++(decision.role == WeightRole::Parameter ? trained : untrained);
  weight.setRole(decision.role);
  if (decision.role == WeightRole::Constant)
    weight->setAttr("nn.reason",
                    StringAttr::get(&graph.context, decision.reason));
  return success();
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
    if (failed(assign(weight)))
      return failure();
  warn();
  return checkPatterns();
}

LogicalResult assignRoles(GraphImporter &graph, const ImportOptions &options) {
  return RoleAssignment(graph, options).run();
}

} // namespace pipewright::frontend
