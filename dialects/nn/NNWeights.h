//===- NNWeights.h - Checks of uses of weights ------------------*- C++ -*-===//
//
// What every op that names a weight checks about it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNWEIGHTS_H
#define PIPEWRIGHT_DIALECTS_NN_NNWEIGHTS_H

#include "dialects/nn/NNOps.h"
#include <optional>

namespace pipewright::nn {

/// Checks that `name` at `user` is a weight of this type and, where given,
/// this role.
llvm::LogicalResult verifyWeightUse(mlir::Operation *user,
                                    mlir::FlatSymbolRefAttr name,
                                    mlir::Type type,
                                    std::optional<WeightRole> role,
                                    mlir::SymbolTableCollection &symbolTables);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNWEIGHTS_H
