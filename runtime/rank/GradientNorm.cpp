//===- GradientNorm.cpp - Gradients are clipped by the norm of all --------===//
//
// The norm is that of the gradients of the mean loss, over all weights of the
// model. Of each weight the squares are added on the rank that has its whole
// gradient; then all ranks add these sums in one order, that of the weights'
// names, whatever rank they are on: the same bits for every number of ranks.
//
// As PyTorch's clip_grad_norm_, gradients are multiplied by
// clipNorm / (norm + 1e-6) if that is below 1. Where some gradient is not a
// finite number, the run ends, or the update changes nothing, on all ranks
// alike: all have the same sums.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/net/Transport.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/rank/Worker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

using namespace pipewright::runtime;

namespace {

/// A gradient of the model, by the weight's name.
struct NamedGradient {
  const TensorInfo *tensor;
  int64_t rank;
};

/// The gradients of all ranks in one order.
struct AllGradients : LibraryState {
  std::vector<NamedGradient> gradients;
  std::vector<double> squares;
};

} // namespace

static void findGradients(const Program &program, AllGradients &all) {
  for (size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const TensorInfo &tensor : program.ranks[rank].tensors)
      if (tensor.isWholeGradient())
        all.gradients.push_back({&tensor, static_cast<int64_t>(rank)});
  std::sort(all.gradients.begin(), all.gradients.end(),
            [](const NamedGradient &a, const NamedGradient &b) {
              return std::string_view(a.tensor->name) < b.tensor->name;
            });
}

double pipewright::runtime::sumOfSquares(const float *values, int64_t count) {
  // Several sums, which a processor adds to at once.
  constexpr int64_t width = 16;
  std::array<double, width> sums = {};
  int64_t i = 0;
  for (; i + width <= count; i += width)
    for (int64_t lane = 0; lane < width; ++lane)
      sums[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
  for (; i < count; ++i)
    sums[i % width] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double each : sums)
    sum += each;
  return sum;
}

void Worker::scaleToNorm() {
  AllGradients &all = library<AllGradients>();
  if (all.gradients.empty())
    findGradients(whole, all);
  std::vector<const TensorInfo *> own;
  for (const NamedGradient &each : all.gradients)
    if (each.rank == number())
      own.push_back(each.tensor);
  const std::vector<double> ownSquares = squaresOf(own);
  all.squares.assign(all.gradients.size(), 0);
  size_t next = 0;
  for (size_t i = 0; i < all.gradients.size(); ++i)
    if (all.gradients[i].rank == number())
      all.squares[i] = ownSquares[next++];
  recorder.wait(FlightRecorder::Norm, 0);
  pipeline().sumToAll(all.squares.data(),
                      static_cast<int64_t>(all.squares.size()));
  recorder.end();
  double sum = 0;
  for (size_t i = 0; i < all.gradients.size(); ++i) {
    if (!notFinite && !std::isfinite(all.squares[i]))
      notFinite = all.gradients[i].tensor->name;
    sum += all.squares[i];
  }
  if (notFinite && !skipsNanSteps)
    fail(
        "the gradient of '", notFinite,
        "' has values that are no finite numbers, at step ",
        stepNumber * whole.updates + updateNumber + 1,
        ": try a smaller --lr, or look for such values in the data; no weights "
        "were saved; --on-nan skip passes over such steps");
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  norm = notFinite ? nan : std::sqrt(sum) * whole.optimizer.gradientScale;
  const double factor =
      notFinite ? nan : std::min(1.0, clipNorm / (norm + 1e-6));
  if (digest)
    digest->add(StepDigest::Kind::Norm, 0, &norm, sizeof norm);
  for (size_t i = 0; i < scalars.size(); ++i)
    if (whole.optimizer.scalars[i].kind == StepScalar::GradientScale)
      scalars[i] = static_cast<float>(scalars[i] * factor);
}
