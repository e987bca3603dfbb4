//===- Optimizer.cpp - What kernels are told for each update --------------===//

#include "runtime/core/Optimizer.h"

#include <cmath>

using namespace pipewright::runtime;

static float biasCorrection(float beta, int64_t update) {
  if (beta == 0)
    return 1;
  const double left = std::pow(static_cast<double>(beta), update + 1);
  return static_cast<float>(1 / (1 - left));
}

std::vector<float>
pipewright::runtime::stepScalars(const OptimizerInfo &optimizer,
                                 float learningRate, int64_t update) {
  std::vector<float> values;
  for (const StepScalar &scalar : optimizer.scalars)
    switch (scalar.kind) {
    case StepScalar::LearningRate:
      values.push_back(learningRate);
      break;
    case StepScalar::BiasCorrection:
      values.push_back(biasCorrection(scalar.of, update));
      break;
    case StepScalar::GradientScale:
      values.push_back(optimizer.gradientScale);
      break;
    }
  return values;
}
