//===- ConfigurationPicture.cpp - What memory buys ------------------------===//
//
// All ways that a search has planned, by the memory that they need and the step
// that they take, and the line of those that no other one beats in both.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ConfigurationSearch.h"

#include "codegen/plan/Plan.h"
#include "passes/schedules/drawing/SvgElements.h"
#include "tools/pipewright/OutputFile.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

namespace pipewright::tool {

llvm::Error ConfigurationSearch::writePicture() const {
  if (wanted.pareto.empty())
    return llvm::Error::success();
  return writeOutput(wanted.pareto,
                     [&](llvm::raw_ostream &os) { os << draw(); });
}

std::string ConfigurationSearch::draw() const {
  constexpr double width = 720, height = 440, left = 80, bottom = 60, top = 40,
                   right = 30, size = 12;
  double longest = 0, fullest = 0;
  for (const Configuration &one : planned) {
    longest = std::max(longest, one.step);
    fullest = std::max(fullest, static_cast<double>(one.arenaBytes));
  }
  auto x = [&](const Configuration &one) {
    return left + (width - left - right) * one.arenaBytes / fullest;
  };
  auto y = [&](const Configuration &one) {
    return height - bottom - (height - bottom - top) * one.step / longest;
  };
  schedules::SvgElements svg;
  svg.path("class=\"grid\"", llvm::formatv("M{0} {1}V{2}H{3}", left, top,
                                           height - bottom, width - right)
                                 .str());
  for (int tick = 1; tick <= 4; ++tick) {
    double share = tick / 4.0;
    svg.text(left + (width - left - right) * share, height - bottom + 18,
             codegen::formatBytes(std::llround(fullest * share)), "middle",
             size);
    svg.text(left - 6,
             height - bottom - (height - bottom - top) * share + size / 3,
             codegen::formatSeconds(longest * share), "end", size);
  }
  svg.text((left + width) / 2, height - 14, "arena of the fullest rank",
           "middle", size);
  svg.text(left, top - 16, "predicted step", "", size);
  // From the fastest to the smallest, in steps: what lies behind is no better.
  std::string front;
  for (const Configuration &one : planned)
    if (one.isOnFront)
      front += front.empty()
                   ? llvm::formatv("M{0:F1} {1:F1}", x(one), y(one)).str()
                   : llvm::formatv("V{1:F1}H{0:F1}", x(one), y(one)).str();
  svg.path("class=\"forward\"", front);
  for (const Configuration &one : planned)
    svg.rect(x(one) - 4, y(one) - 4, 8, 8,
             one.isOnFront ? "class=\"shared\"" : "class=\"memory\"",
             optionsOf(one) + ": " + codegen::formatSeconds(one.step) + ", " +
                 codegen::formatBytes(one.arenaBytes));
  return svg.toFile(width, height,
                    "Predicted step and memory of " +
                        std::to_string(planned.size()) + " ways to use " +
                        std::to_string(wanted.workers) + " workers",
                    /*hasStripes=*/false);
}

} // namespace pipewright::tool
