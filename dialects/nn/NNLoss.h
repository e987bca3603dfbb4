//===- NNLoss.h - What comes in front of a loss -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLOSS_H
#define PIPEWRIGHT_DIALECTS_NN_NNLOSS_H

#include "dialects/nn/NNOps.h"

namespace pipewright::nn {

/// The call that refuses `labels` which the loss does not take. A loss is
/// compiled, and a kernel has no way to say what is wrong.
LibraryCall checkOfLabels(SoftmaxCrossEntropyOp loss, mlir::Value labels);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLOSS_H
