//===- ControlFlow.cpp - If, Loop and Scan --------------------------------===//
//
// A program has no control flow of its own: the branch that a constant
// condition chooses takes the place of If, and all iterations, whose number
// must follow from constants, that of a loop.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNAttributeNames.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/ops/Parts.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright::frontend {

using Values = std::vector<ImportedValue>;

/// Inputs and weights that a value is computed from, for messages.
static std::string sourcesOf(NodeContext &n, const ImportedValue &value) {
  if (value.isWeight())
    return "weight '" + value.weight + "'";
  if (value.kind != ImportedValue::Computed)
    return "something that is no tensor";
  llvm::SetVector<Value> pending;
  pending.insert(value.value);
  SmallVector<std::string> sources;
  for (size_t i = 0; i < pending.size(); ++i) {
    Value at = pending[i];
    if (auto argument = dyn_cast<BlockArgument>(at))
      sources.push_back(
          "input '" +
          n.graph.function
              .getArgAttrOfType<StringAttr>(argument.getArgNumber(), nn::kName)
              .str() +
          "'");
    else if (auto weight = at.getDefiningOp<nn::ParameterOp>())
      sources.push_back(("weight '" + weight.getWeight() + "'").str());
    else
      pending.insert_range(at.getDefiningOp()->getOperands());
  }
  constexpr size_t most = 3;
  std::string text =
      llvm::join(ArrayRef<std::string>(sources).take_front(most), " and ");
  return sources.size() > most ? text + " and others" : text;
}

/// Before it, Scan has a batch dimension in front of all others.
static constexpr int64_t kFirstScanWithAxes = 9;

/// The truth of a condition. `what` is read before "depends on".
static FailureOr<bool> readCondition(NodeContext &n, const ImportedValue &value,
                                     const Twine &what, StringRef advice) {
  FailureOr<ImportedValue> condition = n.graph.asConstantIfUntrained(value);
  if (failed(condition))
    return failure();
  if (!condition->isConstant())
    return n.error() << "expects a condition that is constant, but " << what
                     << " depends on " << sourcesOf(n, *condition) << ": "
                     << advice;
  const ConstantTensor &constant = *condition->constant;
  if (constant.kind() != ElementKind::Bool || constant.size() != 1)
    return n.error() << "expects the condition to be one bool";
  return constant.boolAt(0);
}

static LogicalResult setResults(NodeContext &n, Values values) {
  for (unsigned i = 0; i < n.numOutputs(); ++i)
    if (failed(n.setResult(i, std::move(values[i]))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

static LogicalResult importIf(NodeContext &n) {
  const onnx::GraphProto *branches[] = {n.graphAttribute("else_branch"),
                                        nullptr};
  if (!branches[0] || !(branches[1] = n.graphAttribute("then_branch")))
    return failure();
  static constexpr StringRef names[] = {"else_branch", "then_branch"};
  for (bool chosen : {false, true})
    if (failed(
            n.expectPorts(*branches[chosen], names[chosen], 0, n.numOutputs())))
      return failure();
  FailureOr<bool> chosen =
      readCondition(n, n.input(0), "'" + n.inputName(0) + "'",
                    "a program has one of the branches; export the model with "
                    "the condition fixed, or compute both and choose by Where");
  if (failed(chosen))
    return failure();
  FailureOr<Values> results = n.graph.importSubgraph(
      n, *branches[*chosen], subgraphLabel(n.getLabel(), names[*chosen]), {});
  if (failed(results))
    return failure();
  return setResults(n, std::move(*results));
}

//===----------------------------------------------------------------------===//
// What loops share
//===----------------------------------------------------------------------===//

static LogicalResult checkIterations(NodeContext &n, int64_t count) {
  if (count <= kMaxIterations)
    return success();
  return n.error() << "has more than " << kMaxIterations
                   << " iterations, the most that are imported, one after the "
                      "other";
}

/// Moves outputs of an iteration to where scan outputs are collected.
static LogicalResult collect(NodeContext &n, Values &outputs, size_t first,
                             std::vector<Values> &collected) {
  collected.resize(outputs.size() - first);
  for (auto [i, list] : llvm::enumerate(collected)) {
    ImportedValue &output = outputs[first + i];
    if (output.isSequence() || output.isEmptyOptional() || output.isRandom())
      return n.error() << "expects scan output " << i
                       << " to be a tensor in each iteration";
    list.push_back(std::move(output));
  }
  return success();
}

/// Tensors of one shape on a new axis, which may count from the end.
static FailureOr<ImportedValue> stacked(NodeContext &n, Values tensors,
                                        int64_t axis) {
  const Shape shape = tensors.front().shape;
  FailureOr<int64_t> normal = n.normalizeAxis(axis, shape.size() + 1);
  if (failed(normal))
    return failure();
  for (ImportedValue &tensor : tensors) {
    if (tensor.shape != shape)
      return n.error() << "a scan output has another shape in another "
                          "iteration, and cannot be stacked";
    FailureOr<ImportedValue> row = withAxis(n, tensor, *normal);
    if (failed(row))
      return failure();
    tensor = std::move(*row);
  }
  return joined(n, tensors, *normal);
}

/// What a scan output is where no iteration runs.
static FailureOr<ImportedValue>
emptyScanOutput(NodeContext &n, const onnx::ValueInfoProto &declared) {
  const auto &type = declared.type().tensor_type();
  std::optional<ElementKind> kind = elementKindOf(type.elem_type());
  Shape shape{0};
  bool isKnown = kind && type.has_shape();
  for (const auto &dim : type.shape().dim()) {
    isKnown &= dim.dim_value() > 0;
    shape.push_back(dim.dim_value());
  }
  if (!isKnown)
    return n.error() << "runs no iteration, and nothing tells the shape of "
                        "scan output '"
                     << declared.name() << "'";
  return constantValue(ConstantTensor(*kind, shape));
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

namespace {

class LoopImporter {
public:
  explicit LoopImporter(NodeContext &n) : n(n) {}

  LogicalResult run();

private:
  LogicalResult readInputs();
  LogicalResult iterate();
  FailureOr<bool> runIteration();
  LogicalResult finish();

  NodeContext &n;
  const onnx::GraphProto *body = nullptr;
  /// Unset: until the condition is false.
  std::optional<int64_t> most;
  bool condition = true;
  int64_t iteration = 0;
  Values carried;
  std::vector<Values> collected;
};

} // namespace

static constexpr StringRef kLoopAdvice =
    "a program has a fixed number of iterations; export the model with that "
    "number fixed";

static ConstantTensor truth() {
  ConstantTensor result(ElementKind::Bool, {});
  result.setBool(0, true);
  return result;
}

LogicalResult LoopImporter::readInputs() {
  body = n.graphAttribute("body");
  if (!body)
    return failure();
  for (unsigned i = 2; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      return n.error() << "expects input " << i << ", but it is left out";
    carried.push_back(n.input(i));
  }
  const int64_t scanned = body->output_size() - 1 - int64_t(carried.size());
  if (failed(n.expectPorts(*body, "body", carried.size() + 2,
                           std::max<int64_t>(scanned, 0) + carried.size() + 1)))
    return failure();
  if (n.numOutputs() > carried.size() + scanned)
    return n.error() << "has " << n.numOutputs()
                     << " outputs, but 'body' gives "
                     << carried.size() + scanned;
  collected.resize(scanned);
  if (n.hasInput(0)) {
    FailureOr<ImportedValue> trips = n.graph.asConstantIfUntrained(n.input(0));
    if (failed(trips))
      return failure();
    if (!trips->isConstant())
      return n.error() << "expects a constant number of iterations, but '"
                       << n.inputName(0) << "' depends on "
                       << sourcesOf(n, *trips) << ": " << kLoopAdvice;
    if (trips->element != ElementKind::Int || trips->constant->size() != 1)
      return n.error() << "expects the number of iterations to be one integer";
    most = trips->constant->intAt(0);
  }
  if (n.hasInput(1)) {
    FailureOr<bool> first =
        readCondition(n, n.input(1), "'" + n.inputName(1) + "'", kLoopAdvice);
    if (failed(first))
      return failure();
    condition = *first;
  }
  return success();
}

/// Returns the condition for the next one.
FailureOr<bool> LoopImporter::runIteration() {
  Values inputs{constantValue(ConstantTensor::scalar(iteration)),
                constantValue(truth())};
  llvm::append_range(inputs, carried);
  FailureOr<Values> outputs = n.graph.importSubgraph(
      n, *body, iterationLabel(n.getLabel(), iteration), std::move(inputs));
  if (failed(outputs))
    return failure();
  FailureOr<bool> next = readCondition(n, outputs->front(),
                                       "'" + body->output(0).name() +
                                           "' of iteration " + Twine(iteration),
                                       kLoopAdvice);
  if (failed(next))
    return failure();
  for (auto [i, value] : llvm::enumerate(carried))
    value = std::move((*outputs)[i + 1]);
  if (failed(collect(n, *outputs, carried.size() + 1, collected)))
    return failure();
  return *next;
}

LogicalResult LoopImporter::iterate() {
  while (condition && (!most || iteration < *most)) {
    if (failed(checkIterations(n, iteration + 1)))
      return failure();
    FailureOr<bool> next = runIteration();
    if (failed(next))
      return failure();
    condition = *next;
    ++iteration;
  }
  return success();
}

LogicalResult LoopImporter::finish() {
  for (auto [i, list] : llvm::enumerate(collected)) {
    const unsigned output = carried.size();
    if (!n.isOutputRead(output)) {
      carried.emplace_back();
      continue;
    }
    FailureOr<ImportedValue> result =
        list.empty() ? emptyScanOutput(n, body->output(int(output) + 1))
                     : stacked(n, std::move(list), 0);
    if (failed(result))
      return failure();
    carried.push_back(std::move(*result));
  }
  return setResults(n, std::move(carried));
}

LogicalResult LoopImporter::run() {
  if (failed(readInputs()) || failed(iterate()))
    return failure();
  return finish();
}

static LogicalResult importLoop(NodeContext &n) {
  return LoopImporter(n).run();
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

namespace {

class ScanImporter {
public:
  explicit ScanImporter(NodeContext &n) : n(n), label(n.getLabel()) {}

  LogicalResult run();

private:
  LogicalResult readAttributes();
  LogicalResult readSizes();
  FailureOr<Shape> readList(StringRef name, int64_t count);
  LogicalResult runIteration(int64_t iteration);
  FailureOr<Values> runIterations();
  FailureOr<Values> runSamples();

  NodeContext &n;
  std::string label;
  const onnx::GraphProto *body = nullptr;
  Shape inputAxes, inputDirections, outputAxes, outputDirections;
  int64_t iterations = 0;
  Values states;
  Values scanned;
  std::vector<Values> collected;
};

} // namespace

FailureOr<Shape> ScanImporter::readList(StringRef name, int64_t count) {
  Shape list = n.intsAttribute(name).value_or(Shape(count, 0));
  if (int64_t(list.size()) != count)
    return n.error() << "expects " << count << " numbers in '" << name
                     << "', but got " << list.size();
  return list;
}

LogicalResult ScanImporter::readAttributes() {
  body = n.graphAttribute("body");
  if (!body)
    return failure();
  const bool hasBatch = n.opset < kFirstScanWithAxes;
  if (hasBatch && n.hasInput(0))
    return n.error() << "lengths of sequences (input 0) are not supported: "
                        "export the model with opset "
                     << kFirstScanWithAxes << " or newer";
  const int64_t scans = n.intAttribute("num_scan_inputs", 0);
  const int64_t inputs = int64_t(n.numInputs()) - hasBatch;
  if (scans < 1 || scans > inputs)
    return n.error() << "expects num_scan_inputs from 1 to " << inputs
                     << ", but got " << scans;
  for (int64_t i = 0; i < inputs; ++i)
    (i < inputs - scans ? states : scanned).push_back(n.input(i + hasBatch));
  const int64_t scannedOutputs = n.numOutputs() - int64_t(states.size());
  if (scannedOutputs < 0)
    return n.error() << "expects " << states.size()
                     << " outputs or more, but got " << n.numOutputs();
  if (failed(n.expectPorts(*body, "body", inputs, n.numOutputs())))
    return failure();
  struct List {
    StringRef name;
    int64_t count;
    Shape *numbers;
  };
  const List lists[] = {
      {"scan_input_axes", scans, &inputAxes},
      {hasBatch ? "directions" : "scan_input_directions", scans,
       &inputDirections},
      {"scan_output_axes", scannedOutputs, &outputAxes},
      {"scan_output_directions", scannedOutputs, &outputDirections}};
  for (const List &list : lists) {
    FailureOr<Shape> given = readList(list.name, list.count);
    if (failed(given))
      return failure();
    *list.numbers = *given;
  }
  for (const Shape &directions : {inputDirections, outputDirections})
    for (int64_t direction : directions)
      if (direction != 0 && direction != 1)
        return n.error() << "expects directions of 0 or 1, but got "
                         << direction;
  return success();
}

LogicalResult ScanImporter::readSizes() {
  for (auto [i, input] : llvm::enumerate(scanned)) {
    if (input.isSequence() || input.isEmptyOptional())
      return n.error() << "expects input " << states.size() + i
                       << " to be a tensor";
    FailureOr<int64_t> axis = n.normalizeAxis(inputAxes[i], input.shape.size());
    if (failed(axis))
      return failure();
    inputAxes[i] = *axis;
    const int64_t size = input.shape[*axis];
    if (i > 0 && size != iterations)
      return n.error() << "expects scan inputs of one length, but got "
                       << iterations << " and " << size;
    iterations = size;
  }
  collected.assign(outputAxes.size(), {});
  return checkIterations(n, iterations);
}

LogicalResult ScanImporter::runIteration(int64_t iteration) {
  Values inputs = states;
  for (auto [i, input] : llvm::enumerate(scanned)) {
    const int64_t at =
        inputDirections[i] ? iterations - 1 - iteration : iteration;
    FailureOr<ImportedValue> part = partOf(n, input, inputAxes[i], at, 1);
    if (succeeded(part))
      part = withoutAxis(n, *part, inputAxes[i]);
    if (failed(part))
      return failure();
    inputs.push_back(std::move(*part));
  }
  FailureOr<Values> outputs = n.graph.importSubgraph(
      n, *body, iterationLabel(label, iteration), std::move(inputs));
  if (failed(outputs))
    return failure();
  for (auto [i, state] : llvm::enumerate(states))
    state = std::move((*outputs)[i]);
  return collect(n, *outputs, states.size(), collected);
}

FailureOr<Values> ScanImporter::runIterations() {
  if (failed(readSizes()))
    return failure();
  for (int64_t i = 0; i < iterations; ++i)
    if (failed(runIteration(i)))
      return failure();
  Values results = states;
  for (auto [i, list] : llvm::enumerate(collected)) {
    if (outputDirections[i])
      std::reverse(list.begin(), list.end());
    FailureOr<ImportedValue> result =
        list.empty() ? emptyScanOutput(n, body->output(int(results.size())))
                     : stacked(n, std::move(list), outputAxes[i]);
    if (failed(result))
      return failure();
    results.push_back(std::move(*result));
  }
  return results;
}

/// Sample `sample` of tensors whose first dimension is a batch of `batch`.
static FailureOr<Values> samplesOf(NodeContext &n, ArrayRef<ImportedValue> all,
                                   int64_t batch, int64_t sample) {
  Values samples;
  for (const ImportedValue &tensor : all) {
    if (tensor.shape.empty() || tensor.shape.front() != batch)
      return n.error() << "expects inputs of one batch size";
    FailureOr<ImportedValue> part = partOf(n, tensor, 0, sample, 1);
    if (succeeded(part))
      part = withoutAxis(n, *part, 0);
    if (failed(part))
      return failure();
    samples.push_back(std::move(*part));
  }
  return samples;
}

FailureOr<Values> ScanImporter::runSamples() {
  const Values allStates = states, allScanned = scanned;
  const Shape &shape = allScanned.front().shape;
  const int64_t batch = shape.empty() ? 0 : shape.front();
  if (batch < 1)
    return n.error() << "expects inputs with a batch of 1 or more";
  if (failed(checkIterations(n, batch)))
    return failure();
  std::vector<Values> results(n.numOutputs());
  for (int64_t sample = 0; sample < batch; ++sample) {
    FailureOr<Values> ownStates = samplesOf(n, allStates, batch, sample);
    if (failed(ownStates))
      return failure();
    FailureOr<Values> ownScanned = samplesOf(n, allScanned, batch, sample);
    if (failed(ownScanned))
      return failure();
    states = std::move(*ownStates);
    scanned = std::move(*ownScanned);
    label = iterationLabel(n.getLabel(), sample);
    FailureOr<Values> outputs = runIterations();
    if (failed(outputs))
      return failure();
    for (auto [list, output] : llvm::zip(results, *outputs))
      list.push_back(std::move(output));
  }
  Values whole;
  for (Values &list : results) {
    FailureOr<ImportedValue> result = stacked(n, std::move(list), 0);
    if (failed(result))
      return failure();
    whole.push_back(std::move(*result));
  }
  return whole;
}

LogicalResult ScanImporter::run() {
  if (failed(readAttributes()))
    return failure();
  FailureOr<Values> results =
      n.opset < kFirstScanWithAxes ? runSamples() : runIterations();
  if (failed(results))
    return failure();
  return setResults(n, std::move(*results));
}

static LogicalResult importScan(NodeContext &n) {
  return ScanImporter(n).run();
}

ArrayRef<OpRow> controlFlowOps() {
  static constexpr InputCount any = between(0, kAnyNumber - 1);
  static const OpRow rows[] = {
      {"If", 7, exactly(1), importIf},
      {"Loop", 7, any, importLoop, nullptr, kAnyNumber},
      {"Scan", 8, any, importScan, nullptr, kAnyNumber},
  };
  return rows;
}

} // namespace pipewright::frontend
