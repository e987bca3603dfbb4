//===- BuiltOps.h - What operators of a format become -----------*- C++ -*-===//
//
// What a frontend says of the nn ops that it builds for an operator, and what
// an import has built. Tests compare the two, so that the first holds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_BUILTOPS_H
#define PIPEWRIGHT_FRONTENDS_COMMON_BUILTOPS_H

#include "mlir/IR/Operation.h"

#include <map>
#include <set>
#include <string>

namespace pipewright::frontend {

/// Names of nn ops without the dialect's. Ops without operands, such as
/// constants, are left out.
struct BuiltOps {
  /// Those with float results, where the operator has float results, too:
  /// gradients flow through them.
  std::set<std::string> floats;
  std::set<std::string> others;

  void add(mlir::Operation *op, bool operatorGivesFloats);
};

/// By the operator.
using BuiltOpsByOperator = std::map<std::string, BuiltOps>;

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_BUILTOPS_H
