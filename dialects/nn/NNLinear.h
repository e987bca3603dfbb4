//===- NNLinear.h - What all matrix products share --------------*- C++ -*-===//
//
// Inference, cost and shape of a matrix product, whatever is computed beside
// it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLINEAR_H
#define PIPEWRIGHT_DIALECTS_NN_NNLINEAR_H

#include "dialects/nn/NNInference.h"
#include "runtime/calls/Matmul.h"

namespace pipewright::nn {

/// The shape of a product of two matrices, or of a batch of them.
llvm::FailureOr<llvm::SmallVector<int64_t>>
inferProduct(InferenceSite site, mlir::RankedTensorType a,
             mlir::RankedTensorType b, bool transposeA, bool transposeB);

/// The operations of a product `y`: multiply-adds are counted 2 each.
int64_t productFlops(mlir::Value a, bool transposeA, mlir::Value y);

/// The shape of the call that computes a product `y`.
runtime::MatmulShape matmulShape(mlir::Value a, mlir::Value b, bool transposeA,
                                 bool transposeB, mlir::Value y);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLINEAR_H
