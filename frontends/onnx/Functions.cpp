//===- Functions.cpp - Functions that a model brings along ----------------===//
//
// A call's formal names become those of the call, and all others new ones, so
// a body that is put in its place captures nothing. Graphs that are handed over
// as attributes keep their names: those are of the caller.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Functions.h"

#include "frontends/onnx/DeviceConfigurations.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/UnknownFields.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Attributes = llvm::StringMap<onnx::AttributeProto>;

/// A function, and what is the same for all calls.
struct Function {
  const onnx::FunctionProto *proto;
  int64_t opset;
  /// Values of attributes that a call leaves out.
  Attributes defaults;
  int64_t numNodes, numBytes;
};

/// What the names of a graph become; those of others are looked for outside.
struct NameScope {
  NameScope *outer;
  llvm::StringMap<std::string> names;
};

class FunctionInliner {
public:
  FunctionInliner(ModelFile &file, MLIRContext &context)
      : file(file), context(context) {}

  LogicalResult run();

private:
  /// The functions that are being expanded, outermost first.
  using Stack = SmallVector<const Function *, 4>;

  LogicalResult collectFunctions();
  FailureOr<int64_t> readOpset(const onnx::FunctionProto &function);
  const Function *functionOf(const onnx::NodeProto &node) const;
  LogicalResult expand(Nodes &nodes, StringRef place, Stack &stack);
  LogicalResult checkCall(const Function &function, const onnx::NodeProto &call,
                          StringRef label, const Stack &stack);
  Nodes instantiate(const Function &function, const onnx::NodeProto &call);

  InFlightDiagnostic error(const onnx::NodeProto &call, StringRef label);

  ModelFile &file;
  MLIRContext &context;
  llvm::StringMap<Function> functions;
  llvm::StringSet<> taken;
  int64_t numNodes = 0, numBytes = 0;
};

/// Gives the nodes of one call their names.
class CallRenamer {
public:
  CallRenamer(llvm::StringSet<> &taken, std::string prefix)
      : taken(taken), prefix(std::move(prefix)) {}

  void rename(Nodes &nodes, NameScope &scope);

private:
  std::string newName(StringRef name);
  const std::string &lookup(StringRef name, NameScope &scope);
  void renameSubgraph(onnx::GraphProto &graph, NameScope &outer);

  llvm::StringSet<> &taken;
  std::string prefix;
};

} // namespace

static std::string keyOf(StringRef domain, StringRef name) {
  return ((domain == "ai.onnx" ? StringRef() : domain) + "\n" + name).str();
}

static int64_t countNodes(const Nodes &nodes) {
  int64_t count = nodes.size();
  for (const onnx::NodeProto &node : nodes)
    for (const Subgraph &inner : subgraphsOf(node))
      count += countNodes(inner.graph->node());
  return count;
}

static void collectNames(const Nodes &nodes, llvm::StringSet<> &names) {
  for (const onnx::NodeProto &node : nodes) {
    names.insert(node.input().begin(), node.input().end());
    names.insert(node.output().begin(), node.output().end());
    for (const Subgraph &inner : subgraphsOf(node)) {
      for (const auto &name : namesDefinedIn(*inner.graph))
        names.insert(name.getKey());
      collectNames(inner.graph->node(), names);
    }
  }
}

/// The field `attribute_proto`, which the installed schema may be too old for.
static Attributes readDefaults(const onnx::FunctionProto &function) {
  constexpr int attributeProto = 11;
  Attributes defaults;
  bool isMalformed = false;
  for (const std::string *text :
       unknownTexts(function.unknown_fields(), attributeProto, isMalformed)) {
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(*text))
      defaults[attribute.name()] = attribute;
  }
  return defaults;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string CallRenamer::newName(StringRef name) {
  std::string base = text::shortened(nameWithin(prefix, name), kMaxNameBytes);
  std::string made = base;
  for (int number = 2; !taken.insert(made).second; ++number)
    made = base + "_" + std::to_string(number);
  return made;
}

const std::string &CallRenamer::lookup(StringRef name, NameScope &scope) {
  NameScope *outermost = &scope;
  for (NameScope *s = &scope; s; s = s->outer) {
    if (auto it = s->names.find(name); it != s->names.end())
      return it->second;
    outermost = s;
  }
  return outermost->names[name] = newName(name);
}

void CallRenamer::renameSubgraph(onnx::GraphProto &graph, NameScope &outer) {
  NameScope scope{&outer, {}};
  for (const auto &name : namesDefinedIn(graph))
    scope.names[name.getKey()] = newName(name.getKey());
  for (auto &input : *graph.mutable_input())
    input.set_name(lookup(input.name(), scope));
  for (auto &output : *graph.mutable_output())
    output.set_name(lookup(output.name(), scope));
  for (auto &tensor : *graph.mutable_initializer())
    tensor.set_name(lookup(tensor.name(), scope));
  rename(*graph.mutable_node(), scope);
}

void CallRenamer::rename(Nodes &nodes, NameScope &scope) {
  for (onnx::NodeProto &node : nodes) {
    node.set_name(
        text::shortened(nameWithin(prefix, nodeLabel(node)), kMaxLabelBytes));
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *names)
        if (!name.empty())
          name = lookup(name, scope);
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node))
      renameSubgraph(*inner, scope);
  }
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static const onnx::AttributeProto *findAttribute(const onnx::NodeProto &node,
                                                 StringRef name) {
  for (const auto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

/// Replaces references to a function's attributes by the values of a call;
/// those without a value go.
static void bindAttributes(Nodes &nodes, const onnx::NodeProto &call,
                           const Attributes &defaults) {
  for (onnx::NodeProto &node : nodes) {
    auto &attributes = *node.mutable_attribute();
    for (int i = attributes.size() - 1; i >= 0; --i) {
      const std::string reference = attributes[i].ref_attr_name();
      if (reference.empty()) {
        if (attributes[i].has_g())
          bindAttributes(*attributes[i].mutable_g()->mutable_node(), call,
                         defaults);
        for (auto &graph : *attributes[i].mutable_graphs())
          bindAttributes(*graph.mutable_node(), call, defaults);
        continue;
      }
      const onnx::AttributeProto *value = findAttribute(call, reference);
      if (auto it = defaults.find(reference); !value && it != defaults.end())
        value = &it->second;
      if (!value) {
        attributes.DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = attributes[i].name();
      attributes[i] = *value;
      attributes[i].set_name(name);
    }
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

InFlightDiagnostic FunctionInliner::error(const onnx::NodeProto &call,
                                          StringRef label) {
  return file.error(context)
         << "node '" << label << "' (function " << call.op_type() << "): ";
}

FailureOr<int64_t>
FunctionInliner::readOpset(const onnx::FunctionProto &function) {
  int64_t opset = file.opset;
  for (const auto &import : function.opset_import())
    if (import.domain().empty() || import.domain() == "ai.onnx")
      opset = import.version();
  if (opset < kOldestOpset)
    return file.error(context)
           << "function '" << function.name() << "': expects opset "
           << kOldestOpset << " or newer, but got " << opset
           << ": export the model again";
  return opset;
}

LogicalResult FunctionInliner::collectFunctions() {
  for (const auto &function : file.proto->functions()) {
    FailureOr<int64_t> opset = readOpset(function);
    if (failed(opset))
      return failure();
    Function known{&function, *opset, readDefaults(function),
                   countNodes(function.node()),
                   static_cast<int64_t>(function.ByteSizeLong())};
    if (!functions
             .try_emplace(keyOf(function.domain(), function.name()),
                          std::move(known))
             .second)
      return file.error(context)
             << "function '" << function.name() << "' is defined twice";
  }
  return success();
}

const Function *FunctionInliner::functionOf(const onnx::NodeProto &node) const {
  auto it = functions.find(keyOf(node.domain(), node.op_type()));
  return it == functions.end() ? nullptr : &it->second;
}

LogicalResult FunctionInliner::checkCall(const Function &function,
                                         const onnx::NodeProto &call,
                                         StringRef label, const Stack &stack) {
  const onnx::FunctionProto &proto = *function.proto;
  if (llvm::is_contained(stack, &function))
    return error(call, label) << "the function calls itself";
  if (stack.size() == kMaxSubgraphDepth)
    return error(call, label) << "functions call each other more than "
                              << kMaxSubgraphDepth << " deep";
  auto checkCount = [&](StringRef what, int got, int most) -> LogicalResult {
    if (got <= most)
      return success();
    return error(call, label)
           << "expects at most " << most << " " << what << ", but got " << got;
  };
  if (failed(checkCount("inputs", call.input_size(), proto.input_size())) ||
      failed(checkCount("outputs", call.output_size(), proto.output_size())))
    return failure();
  llvm::StringSet<> formals;
  for (const std::string &input : proto.input())
    if (!formals.insert(input).second)
      return error(call, label) << "'" << input << "' is defined twice";
  for (const auto &attribute : call.attribute())
    if (!llvm::is_contained(proto.attribute(), attribute.name()) &&
        !function.defaults.contains(attribute.name()))
      return error(call, label)
             << "the function has no attribute '" << attribute.name() << "'";
  numNodes += function.numNodes;
  numBytes += function.numBytes + int64_t(call.ByteSizeLong());
  if (numNodes > kMaxInlinedNodes || numBytes > kMaxInlinedBytes)
    return error(call, label)
           << "the model's functions become more than " << kMaxInlinedNodes
           << " nodes or " << kMaxInlinedBytes
           << " bytes in the places where they are called";
  return success();
}

Nodes FunctionInliner::instantiate(const Function &function,
                                   const onnx::NodeProto &call) {
  const onnx::FunctionProto &proto = *function.proto;
  NameScope scope{nullptr, {}};
  for (auto [i, input] : llvm::enumerate(proto.input()))
    scope.names[input] = int(i) < call.input_size() ? call.input(int(i)) : "";
  // An output that something else is already, as its value.
  Nodes copies;
  for (int i = 0; i < call.output_size(); ++i) {
    if (call.output(i).empty())
      continue;
    auto [it, isNew] = scope.names.try_emplace(proto.output(i), call.output(i));
    if (isNew)
      continue;
    onnx::NodeProto &copy = *copies.Add();
    copy.set_name(nodeLabel(call));
    copy.set_op_type("Identity");
    copy.add_input(it->second);
    copy.add_output(call.output(i));
  }
  Nodes body = proto.node();
  CallRenamer(taken, nodeLabel(call)).rename(body, scope);
  bindAttributes(body, call, function.defaults);
  if (function.opset != file.opset)
    setOpset(body, function.opset);
  for (onnx::NodeProto &copy : copies)
    *body.Add() = std::move(copy);
  for (onnx::NodeProto &node : body)
    inheritStages(node, call);
  return body;
}

LogicalResult FunctionInliner::expand(Nodes &nodes, StringRef place,
                                      Stack &stack) {
  Nodes result;
  for (onnx::NodeProto &node : nodes) {
    std::string label = nameWithin(place, nodeLabel(node));
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node))
      if (failed(expand(*inner->mutable_node(), label, stack)))
        return failure();
    const Function *function = functionOf(node);
    if (!function) {
      *result.Add() = std::move(node);
      continue;
    }
    if (failed(checkCall(*function, node, label, stack)))
      return failure();
    Nodes body = instantiate(*function, node);
    stack.push_back(function);
    if (failed(expand(body, place, stack)))
      return failure();
    stack.pop_back();
    for (onnx::NodeProto &inner : body)
      *result.Add() = std::move(inner);
  }
  nodes.Swap(&result);
  return success();
}

LogicalResult FunctionInliner::run() {
  if (failed(collectFunctions()))
    return failure();
  onnx::GraphProto &graph = *file.proto->mutable_graph();
  for (const auto &name : namesDefinedIn(graph))
    taken.insert(name.getKey());
  collectNames(graph.node(), taken);
  Stack stack;
  return expand(*graph.mutable_node(), "", stack);
}

LogicalResult inlineFunctions(ModelFile &file, MLIRContext &context) {
  if (file.proto->functions().empty())
    return success();
  return FunctionInliner(file, context).run();
}

} // namespace pipewright::frontend
