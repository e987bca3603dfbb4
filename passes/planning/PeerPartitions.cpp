//===- PeerPartitions.cpp - How others cut a chain of layers --------------===//
//
// See PeerPartitions.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/PeerPartitions.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>

using namespace pipewright;

std::vector<int64_t> pipewright::cutAsDeepSpeedUniform(int64_t layers,
                                                       int64_t parts) {
  assert(parts >= 1 && layers >= parts);
  std::vector<int64_t> begins;
  for (int64_t part = 0; part < parts; ++part)
    begins.push_back(part * (layers / parts) + std::min(part, layers % parts));
  return begins;
}

std::vector<int64_t>
pipewright::cutAsDeepSpeedBalanced(llvm::ArrayRef<double> costs,
                                   int64_t parts) {
  const auto layers = static_cast<int64_t>(costs.size());
  if (layers <= parts)
    return cutAsDeepSpeedUniform(layers, parts);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  /// The cut that is kept of the first layers into some parts.
  struct Kept {
    double most = infinite, least = infinite, difference = infinite;
    int64_t begin = 0;
  };
  std::vector<double> until(1, 0);
  for (double cost : costs)
    until.push_back(until.back() + cost);
  std::vector<std::vector<Kept>> kept(parts + 1, std::vector<Kept>(layers + 1));
  kept[0][0].most = kept[0][0].difference = 0;
  for (int64_t end = 1; end <= layers; ++end)
    for (int64_t part = 1; part <= std::min(end, parts); ++part)
      for (int64_t begin = part - 1; begin < end; ++begin) {
        const Kept &before = kept[part - 1][begin];
        const double own = until[end] - until[begin];
        const double most = std::max(before.most, own);
        const double least = std::min(before.least, own);
        Kept &best = kept[part][end];
        if (most - least <= best.difference)
          best = {most, least, most - least, begin};
      }
  std::vector<int64_t> begins(parts);
  int64_t end = layers;
  for (int64_t part = parts; part > 0; --part)
    end = begins[part - 1] = kept[part][end].begin;
  return begins;
}

std::vector<int64_t> pipewright::cutAsTorchgpipe(llvm::ArrayRef<double> costs,
                                                 int64_t parts) {
  const auto layers = static_cast<int64_t>(costs.size());
  assert(parts >= 1 && layers >= parts);
  const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
  const double span = *most - *least;
  std::vector<double> scaled;
  for (double cost : costs)
    scaled.push_back(span > 0 ? (cost - *least) / span : 0);
  // Where each part begins, and at last the end of all.
  std::vector<int64_t> borders;
  for (int64_t part = 0; part < parts; ++part)
    borders.push_back(part * (layers / parts));
  borders.push_back(layers);
  auto sizes = [&] {
    std::vector<double> all;
    for (int64_t part = 0; part < parts; ++part) {
      double size = 0;
      for (int64_t layer = borders[part]; layer < borders[part + 1]; ++layer)
        size += scaled[layer];
      all.push_back(size);
    }
    return all;
  };
  // Each turn makes a smallest part larger, or goes round in a circle.
  int64_t turns = layers * layers * parts;
  while (true) {
    // Of equal ones the last is the largest, and the first the smallest.
    const std::vector<double> begun = sizes();
    const int64_t largest =
        parts - 1 -
        (std::max_element(begun.rbegin(), begun.rend()) - begun.rbegin());
    for (int64_t giver = -1; giver != largest;) {
      const std::vector<double> now = sizes();
      const int64_t smallest =
          std::min_element(now.begin(), now.end()) - now.begin();
      if (begun[largest] <= now[smallest] + 1) {
        const bool hasEmpty =
            std::adjacent_find(borders.begin(), borders.end(),
                               std::greater_equal<>()) != borders.end();
        borders.pop_back();
        return hasEmpty ? std::vector<int64_t>() : borders;
      }
      if (--turns < 0)
        return {};
      if (largest < smallest) {
        giver = smallest - 1;
        --borders[smallest];
      } else {
        giver = smallest + 1;
        ++borders[smallest + 1];
      }
      if (borders.front() != 0 ||
          std::any_of(borders.begin(), borders.end(),
                      [&](int64_t at) { return at < 0 || at > layers; }))
        return {};
    }
  }
}
