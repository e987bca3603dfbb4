//===- ModelProblems.h - What no level may have -----------------*- C++ -*-===//
//
// Rules for names, types and counted labels that hold at every level: text of a
// level is as little to be trusted as a model. Each function says what is
// wrong, or nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_CLEAN_MODELPROBLEMS_H
#define PIPEWRIGHT_PASSES_NN_CLEAN_MODELPROBLEMS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace pipewright::nn {

/// To be read after the name of a value.
std::string problemOfType(mlir::Type type);

/// To be read after the name of an input that `nn.counted_inputs` has. `typeOf`
/// knows the types of inputs, null for names of none.
std::string
problemOfCounted(mlir::NamedAttribute counted,
                 llvm::function_ref<mlir::Type(llvm::StringRef)> typeOf);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_CLEAN_MODELPROBLEMS_H
