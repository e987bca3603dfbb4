//===- ProductTime.cpp - How long a matrix product takes ------------------===//

#include "passes/planning/ProductTime.h"

#include <algorithm>
#include <limits>

using namespace pipewright;

namespace {

struct Tile {
  int64_t rows, columns;
  /// Of the rate that the largest reaches: a small one reads more for what it
  /// computes.
  double share;
};

} // namespace

/// Those that libraries have. Shares are assumed; with these, the products of a
/// step of GPT-2 on an H200 are within 12 % of what was measured
/// (doc/gpu-results.md).
static constexpr Tile tiles[] = {
    {128, 256, 1},    {256, 128, 1},  {128, 192, 0.98}, {192, 128, 0.98},
    {128, 128, 0.93}, {128, 64, 0.8}, {64, 128, 0.8},   {64, 64, 0.6}};

static int64_t ceilDivide(int64_t a, int64_t b) { return a / b + (a % b > 0); }

double pipewright::secondsOfProduct(const ProductSize &size,
                                    const MachineModel &machine) {
  // A file may have any number.
  const auto processors =
      static_cast<int64_t>(std::clamp(machine.processors, 1.0, 1048576.0));
  if (processors == 1)
    return size.flops() / machine.matmulFlops;
  // In how many parts a sum is split, and the least of a part.
  constexpr int64_t mostParts = 8, leastOfPart = 512;
  const double rateOfOne =
      machine.matmulFlops / static_cast<double>(processors);
  // Parts are f32, written and read.
  const double secondsOfParts = 2 * 4.0 * static_cast<double>(size.batch) *
                                static_cast<double>(size.m) *
                                static_cast<double>(size.n) / machine.bandwidth;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile &tile : tiles) {
    const int64_t count = size.batch * ceilDivide(size.m, tile.rows) *
                          ceilDivide(size.n, tile.columns);
    for (int64_t parts = 1; parts <= mostParts; ++parts) {
      if (parts > 1 && size.k / parts < leastOfPart)
        break;
      const double operations =
          2.0 * static_cast<double>(tile.rows * tile.columns) *
          static_cast<double>(ceilDivide(size.k, parts)) / tile.share;
      const auto waves =
          static_cast<double>(ceilDivide(count * parts, processors));
      double seconds = waves * operations / rateOfOne;
      if (parts > 1)
        seconds += static_cast<double>(parts) * secondsOfParts;
      least = std::min(least, seconds);
    }
  }
  return least;
}
