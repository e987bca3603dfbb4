//===- CutSearch.h - Cuts that a schedule takes less time with --*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CUTSEARCH_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CUTSEARCH_H

#include "tools/pipewright/ModelStages.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// Moves layers from stage to stage, one at a time, as long as the schedule of
/// the options takes less time by estimates of what ops take: a local search.
class CutSearch {
public:
  /// Looks at no more than `budget` cuts.
  CutSearch(ModelStages &stages, const CompileOptions &options, int64_t budget)
      : stages(stages), options(options), budget(budget) {}

  /// Begins with so many layers in each stage, and goes to no cut whose fullest
  /// rank needs more, by estimates, than with these. The number of layers in
  /// each stage of the fastest; none where no faster one was found.
  std::optional<std::vector<int64_t>> improve(std::vector<int64_t> layers);

  /// As --balance takes it.
  static std::string balanceOf(const std::vector<int64_t> &layers);

private:
  /// What a cut comes to; infinite where it is none.
  struct Estimate {
    double step, bytes;
  };
  Estimate estimate(const std::vector<int64_t> &layers);

  ModelStages &stages;
  const CompileOptions &options;
  int64_t budget;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CUTSEARCH_H
