//===- UnsupportedOps.cpp - All that a model has and we have not ----------===//

#include "frontends/onnx/UnsupportedOps.h"

#include "frontends/onnx/ExporterMetadata.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/OpRegistry.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// Nodes of one operator.
struct Kind {
  const onnx::NodeProto *first = nullptr;
  int64_t count = 0;
};
} // namespace

/// What an operator is for, where its name does not tell, and the way out.
static StringRef adviceFor(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Cases({"RandomNormalLike", "RandomNormal", "Multinomial"},
             "random numbers that are no dropout: make them an input of the "
             "model")
      .Cases({"If", "Loop", "Scan"},
             "control flow; export the model with fixed shapes and constant "
             "conditions")
      .Cases({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"},
             "quantization; export the model that was not quantized")
      .Cases({"NonMaxSuppression", "Unique", "Compress"},
             "a result whose shape depends on data")
      .Default("");
}

/// "'conv' of module 'h.0'"
static std::string placeOf(const onnx::NodeProto &node) {
  std::string module = moduleOf(node);
  return "'" + nodeLabel(node) + "'" +
         (module.empty() ? "" : " of module '" + module + "'");
}

static std::string withAdvice(StringRef op) {
  StringRef advice = adviceFor(op);
  return advice.empty() ? "" : (": " + advice).str();
}

LogicalResult checkSupported(const ModelFile &file,
                             ArrayRef<const onnx::NodeProto *> nodes,
                             MLIRContext &context) {
  llvm::MapVector<StringRef, Kind> kinds;
  for (const onnx::NodeProto *node : nodes) {
    bool isOurs = node->domain().empty() || node->domain() == "ai.onnx";
    if (!isOurs || findOp(node->op_type()))
      continue;
    Kind &kind = kinds[node->op_type()];
    kind.first = kind.first ? kind.first : node;
    ++kind.count;
  }
  if (kinds.empty())
    return success();
  if (kinds.size() == 1) {
    auto &[op, kind] = kinds.front();
    return file.error(context)
           << "node " << placeOf(*kind.first) << " (" << op << ", opset "
           << file.opset << "): this operator is not supported"
           << withAdvice(op);
  }
  auto error = file.error(context);
  error << kinds.size() << " operators are not supported: ";
  const char *separator = "";
  for (auto &[op, kind] : kinds) {
    error << separator << op << " (" << kind.count
          << (kind.count == 1 ? " node, " : " nodes, the first ")
          << placeOf(*kind.first) << withAdvice(op) << ")";
    separator = ", ";
  }
  return error;
}

} // namespace pipewright::frontend
