//===- LossBuilder.h - Losses as nn ops ------------------------*- C++ -*-===//
//
// The losses that a model may bring with it or that an option adds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_LOSSBUILDER_H
#define PIPEWRIGHT_FRONTENDS_COMMON_LOSSBUILDER_H

#include "frontends/common/TensorBuilder.h"

namespace pipewright::frontend {

/// A label that marks nothing: PyTorch's default for ignore_index.
constexpr int64_t kNoIgnoredLabel = -100;

/// Mean cross entropy of logits [..., C] and labels [...]; null after an
/// error.
mlir::Value buildCrossEntropy(TensorBuilder &b, mlir::Value logits,
                              mlir::Value labels, int64_t ignoredLabel);

/// Mean of the squared differences.
mlir::Value buildMeanSquaredError(TensorBuilder &b, mlir::Value prediction,
                                  mlir::Value target);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_LOSSBUILDER_H
