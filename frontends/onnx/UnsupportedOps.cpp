//===- UnsupportedOps.cpp - All that a model has and we have not ----------===//

#include "frontends/onnx/UnsupportedOps.h"

#include "frontends/onnx/ExporterMetadata.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/Subgraphs.h"
#include "support/Text.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// Nodes of one operator.
struct Kind {
  std::string title;
  const onnx::NodeProto *first;
  /// The subgraph that `first` is in.
  std::string place;
  int64_t count = 0;
};
} // namespace

/// What an operator is for, where its name does not tell, and the way out.
static StringRef adviceFor(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Cases({"RandomNormalLike", "RandomNormal", "Multinomial"},
             "random numbers that are no dropout: make them an input of the "
             "model")
      .Cases({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"},
             "quantization; export the model that was not quantized")
      .Cases({"NonMaxSuppression", "Unique"},
             "a result whose shape depends on data")
      .Default("");
}

/// Where operators of a domain that is not ONNX's come from, and the way out.
static StringRef adviceForDomain(StringRef domain) {
  if (domain.starts_with("com.microsoft"))
    return "of ONNX Runtime's optimizer; take the model from before it";
  if (domain == "ai.onnx.ml")
    return "of classical machine learning";
  return "of another domain than ONNX's";
}

static bool isOurs(const onnx::NodeProto &node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

/// "Gelu", "com.microsoft.Gelu"
static std::string titleOf(const onnx::NodeProto &node) {
  return text::printable(isOurs(node) ? node.op_type()
                                      : node.domain() + "." + node.op_type());
}

/// "'conv' of module 'h.0', which was aten.conv2d"
static std::string placeOf(const Kind &kind) {
  const onnx::NodeProto &node = *kind.first;
  std::string module = moduleOf(node), operation = operationOf(node);
  return "'" + nameWithin(kind.place, nodeLabel(node)) + "'" +
         (module.empty() ? "" : " of module '" + module + "'") +
         (operation.empty() ? "" : ", which was " + operation);
}

static std::string withAdvice(const onnx::NodeProto &node) {
  StringRef advice =
      isOurs(node) ? adviceFor(node.op_type()) : adviceForDomain(node.domain());
  return advice.empty() ? "" : (": " + advice).str();
}

LogicalResult checkSupported(const ModelFile &file, const NodeOrder &order,
                             MLIRContext &context) {
  std::vector<Kind> kinds;
  order.walk([&](const onnx::NodeProto &node, StringRef place) {
    if (isOurs(node) && findOp(node.op_type()))
      return;
    std::string title = titleOf(node);
    auto known = llvm::find_if(
        kinds, [&](const Kind &kind) { return kind.title == title; });
    if (known == kinds.end())
      known = kinds.insert(known, {title, &node, place.str()});
    ++known->count;
  });
  if (kinds.empty())
    return success();
  if (kinds.size() == 1) {
    const Kind &kind = kinds.front();
    return file.error(context)
           << "node " << placeOf(kind) << " (" << kind.title << ", opset "
           << file.opsetOf(*kind.first) << "): this operator is not supported"
           << withAdvice(*kind.first);
  }
  auto error = file.error(context);
  error << kinds.size() << " operators are not supported: ";
  const char *separator = "";
  for (const Kind &kind : kinds) {
    error << separator << kind.title << " (" << kind.count
          << (kind.count == 1 ? " node, " : " nodes, the first ")
          << placeOf(kind) << withAdvice(*kind.first) << ")";
    separator = ", ";
  }
  return error;
}

} // namespace pipewright::frontend
