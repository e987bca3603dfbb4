//===- RandomWeights.h - Initial weights without a file --------*- C++ -*-===//
//
// For benchmarks and for models that are trained from nothing: what counts for
// speed is shapes, and a file of them may be larger than all the rest.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_RANDOMWEIGHTS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_RANDOMWEIGHTS_H

#include "runtime/rank/Worker.h"

namespace pipewright::runtime {

/// Throws an Error for a weight that has to come from a file: a constant.
void checkRandomWeights(const Program &program);

/// Fills all weights of the rank; a function of each weight's name and shape,
/// so that replicas of a weight agree. Matrices and filters are normal with
/// variance 1 / (elements per output), as in Y. LeCun et al., "Efficient
/// BackProp" (1998), section 4.6; vectors called "bias" and running means are
/// 0, other vectors (scales of norms) and running variances are 1.
void drawWeights(Worker &rank);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_RANDOMWEIGHTS_H
