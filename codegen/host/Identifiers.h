//===- Identifiers.h - Names from the model for generated code --*- C++ -*-===//
//
// Generated code is meant to be read, so its values are called what the model
// calls them: the last parts of an op's location, made into C identifiers that
// are unique within a function.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_IDENTIFIERS_H
#define PIPEWRIGHT_CODEGEN_HOST_IDENTIFIERS_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright::codegen {

/// `/transformer/h.0/ln_1/Add_output_0` -> `h_0_ln_1_add`.
std::string makeIdentifier(llvm::StringRef name);

/// Whether an op computes nothing of its own: what it brings to others, a
/// weight, a constant or a copy, may be of another part of the model.
bool onlyBrings(mlir::Operation *op);

/// A C identifier for a value: its weight's, its location's or its op's name.
std::string identifierFor(mlir::Value value);

/// Names that are taken in one function.
class NameScope {
public:
  NameScope();
  /// `base`, or `base_2`, `base_3`, ... when it is taken.
  std::string unique(llvm::StringRef base);
  bool contains(llvm::StringRef name) const { return taken.contains(name); }

private:
  llvm::StringMap<unsigned> taken;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_IDENTIFIERS_H
