//===- BuiltOps.cpp - What operators of a format become -------------------===//

#include "frontends/common/Frontend.h"

#include "mlir/IR/BuiltinTypes.h"

namespace pipewright::frontend {

void BuiltOps::add(mlir::Operation *op, bool operatorGivesFloats) {
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return;
  bool isFloat =
      mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(op->getResult(0)));
  (isFloat && operatorGivesFloats ? floats : others)
      .insert(op->getName().stripDialect().str());
}

std::vector<std::string> unsaidOps(const Frontend &frontend,
                                   const ImportedModel &model) {
  BuiltOpsByOperator said;
  for (OperatorSummary &op : frontend.operators())
    said[op.name] = std::move(op.built);
  std::vector<std::string> messages;
  auto compare = [&](const std::string &name, const char *kind,
                     const std::set<std::string> &built,
                     const std::set<std::string> &known) {
    for (const std::string &op : built)
      if (!known.count(op))
        messages.push_back("'" + name + "' builds 'nn." + op + "' for " + kind +
                           ", which its list of nn ops does not have");
  };
  for (const auto &[name, ops] : model.built) {
    compare(name, "float results", ops.floats, said[name].floats);
    compare(name, "other results", ops.others, said[name].others);
  }
  return messages;
}

} // namespace pipewright::frontend
