//===- ConfigurationSearch.h - The fastest way to use workers ---*- C++ -*-===//
//
// `--search`: of all ways to make N workers ranks and replicas, to cut a batch
// into micro-batches, to share states and to recompute, the one whose predicted
// step is the shortest within a memory limit. Schedules and stages are chosen
// for each (PlanChoice.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CONFIGURATIONSEARCH_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CONFIGURATIONSEARCH_H

#include "tools/pipewright/Options.h"

#include <string>
#include <vector>

namespace pipewright::tool {

class Compilation;

struct SearchOptions {
  bool isWanted = false;
  /// Ranks of all replicas, and samples of all their micro-batches in a step;
  /// 0: not given.
  int64_t workers = 0, batch = 0;
  /// How many of the best to run; 0: none.
  int64_t tune = 0;
  /// Where to draw what was tried; empty for nowhere.
  std::string pareto;
};

/// --search and the options that go with it.
const std::vector<OptionRow<SearchOptions>> &searchRows();

/// One way, and what its plan says.
struct Configuration {
  int64_t ranks = 1, replicas = 1, zero = 0;
  int64_t microBatchSize = 1, microBatches = 1;
  std::string remat, schedule;
  /// How the model is cut; empty: as the user said, or as usual.
  std::string balance;
  /// Whether what is recomputed is tasks of their own.
  bool recomputesEarly = false;
  int64_t stages = 1;
  /// Seconds of a step: of the busiest rank's tasks, by how much sums of
  /// replicas lengthen it, and all others, in which that rank waits.
  double step = 0, work = 0, exposed = 0, waiting = 0;
  /// Of the fullest rank.
  int64_t arenaBytes = 0;
  /// Whether no other one that was planned is as fast with less memory.
  bool isOnFront = false;

  /// What a command line needs for it, beside the user's own options.
  std::string options() const;
};

class ConfigurationSearch {
public:
  /// `given` are the options of the model, and what they fix stays.
  ConfigurationSearch(const OptionValues &given, const SearchOptions &wanted)
      : given(given), wanted(wanted) {}

  /// Plans what may be the best. Fails where nothing fits, or an option goes
  /// with no search.
  llvm::Error run();

  /// The fastest first; of equals, what needs less memory.
  llvm::ArrayRef<Configuration> all() const { return planned; }
  /// The options of the model with those of one of them.
  OptionValues valuesOf(const Configuration &one) const;
  void print(llvm::raw_ostream &os) const;
  llvm::json::Value toJson() const;
  /// Draws memory and time of all that was planned, where that is wanted.
  llvm::Error writePicture() const;

private:
  llvm::Error checkOptions() const;
  llvm::Error trySize(int64_t microBatchSize);
  mlir::LogicalResult import(const CompileOptions &options,
                             std::optional<Compilation> &compilation);
  double leastStep(int64_t microBatchSize,
                   std::optional<Compilation> &compilation);
  void trySharing(Configuration one, double least,
                  std::optional<Compilation> &compilation);
  bool tryModes(Configuration one, double least,
                std::optional<Compilation> &compilation);
  void tryEachRank(Configuration one, double least, Compilation &compilation);
  void tryVariants(llvm::function_ref<bool(Configuration &)> change);
  std::vector<std::string> remats() const;
  /// Whether memory does not matter.
  bool isForSpeed() const { return wanted.pareto.empty() && !hasLimit; }
  /// No plan with a longer step is of use: the best ones are told apart.
  double stepToBeat() const {
    constexpr size_t best = 3;
    return wanted.pareto.empty() && planned.size() >= best
               ? planned[best - 1].step
               : std::numeric_limits<double>::infinity();
  }
  bool isSlower(double step) const;
  Configuration onOneRank(int64_t microBatchSize) const;
  void add(Configuration one);
  llvm::StringRef cutOf(const Configuration &one) const;
  void tell(const Configuration &next) const;
  std::string draw() const;

  const OptionValues given;
  const SearchOptions wanted;
  std::string model;
  /// The last size of micro-batches that the model cannot have.
  std::optional<int64_t> unreadable;
  std::optional<int64_t> memoryLimit;
  /// Whether that or the machine limits memory.
  bool hasLimit = false;
  /// The level of ZeRO above which nothing more is shared.
  int64_t highestZero = 3;
  /// Seconds that the forwards of a micro-batch take, one after the other. Not
  /// less for larger ones, so it is kept while sizes grow.
  double longestPass = 0;
  std::vector<Configuration> planned;
  /// What was not planned, or whose plan does not fit; the least that any of
  /// the latter needs.
  int64_t impossible = 0, slower = 0, tooLarge = 0, alike = 0;
  std::string reason;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CONFIGURATIONSEARCH_H
