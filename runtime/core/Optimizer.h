//===- Optimizer.h - What kernels are told for each update -----*- C++ -*-===//
//
// An optimizer as a program knows it: the compiler has put its formula into
// kernels, which get a few numbers anew for each update.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_OPTIMIZER_H
#define PIPEWRIGHT_RUNTIME_CORE_OPTIMIZER_H

#include "runtime/core/Table.h"

#include <cmath>
#include <cstdint>

namespace pipewright::runtime {

/// A number that kernels get for each update.
struct StepScalar {
  enum Kind {
    LearningRate,
    /// 1 / (1 - of^t) for the t-th update: an average that began with 0 has
    /// this much less than it will have. 1 where `of` is 0.
    BiasCorrection,
    /// OptimizerInfo::gradientScale.
    GradientScale,
  };
  Kind kind = LearningRate;
  float of = 0;
};

struct OptimizerInfo {
  const char *name = "sgd";
  /// Unless the user gives another.
  float learningRate = 0.01f;
  /// What a summed gradient is multiplied by: 1 / microBatches, unless the
  /// loss gradient was scaled already.
  float gradientScale = 1;
  /// The largest norm that all gradients of the model together may have, above
  /// which they are scaled down to it; 0: they are taken as they are.
  float clipNorm = 0;
  /// In the order in which kernels read them.
  Table<StepScalar> scalars = {};
};

/// The value of a scalar behind `update` updates of the run. Where
/// GradientScale is not a number, weights and states stay what they are, in
/// programs that clip gradients.
inline float valueAt(int64_t update, const StepScalar &scalar,
                     const OptimizerInfo &optimizer, float learningRate) {
  double value = 0;
  switch (scalar.kind) {
  case StepScalar::LearningRate:
    value = learningRate;
    break;
  case StepScalar::BiasCorrection:
    value = 1 / (1 - std::pow(static_cast<double>(scalar.of), update + 1));
    break;
  case StepScalar::GradientScale:
    value = optimizer.gradientScale;
    break;
  }
  return static_cast<float>(value);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_OPTIMIZER_H
