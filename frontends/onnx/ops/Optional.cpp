//===- Optional.cpp - Optionals, which are what they hold -----------------===//
//
// Whether an optional holds something is known while the model is imported.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"

using namespace mlir;

namespace pipewright::frontend {

static LogicalResult importOptional(NodeContext &n) {
  // The type of what it would hold.
  n.attribute("type");
  if (n.hasInput(0))
    return n.forward(0, 0);
  ImportedValue empty;
  empty.kind = ImportedValue::EmptyOptional;
  return n.setResult(0, std::move(empty));
}

static LogicalResult importOptionalHasElement(NodeContext &n) {
  ConstantTensor result(ElementKind::Bool, {});
  result.setBool(0, n.hasInput(0) && !n.input(0).isEmptyOptional());
  return n.setResult(0, std::move(result));
}

static LogicalResult importOptionalGetElement(NodeContext &n) {
  if (n.input(0).isEmptyOptional())
    return n.error() << "input 0 ('" << n.inputName(0)
                     << "') is an optional that holds nothing";
  return n.forward(0, 0);
}

ArrayRef<OpRow> optionalOps() {
  static const OpRow rows[] = {
      {"Optional", 15, between(0, 1), importOptional, nullptr, kAnyNumber},
      {"OptionalHasElement", 15, between(0, 1), importOptionalHasElement,
       nullptr, kAnyNumber},
      {"OptionalGetElement", 15, exactly(1), importOptionalGetElement, nullptr,
       kAnyNumber},
  };
  return rows;
}

} // namespace pipewright::frontend
