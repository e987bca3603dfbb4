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

#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/Options.h"

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright::tool {

struct SearchOptions {
  bool isWanted = false;
  /// Ranks of all replicas, and samples of all their micro-batches in a step;
  /// 0: not given.
  int64_t workers = 0, batch = 0;
  /// Whether --ranks says how many workers there are, and no number of ranks.
  bool ranksAreWorkers = false;
  /// How many of the best to run; 0: none.
  int64_t tune = 0;
  /// Where to draw what was tried; empty for nowhere.
  std::string pareto;
};

/// --search and the options that go with it.
const std::vector<OptionRow<SearchOptions>> &searchRows();
/// Of a command line, where the number of workers may be among the options of
/// the model: without --workers, --ranks are all of them, in pipelines of how
/// many there may be; with --data-parallel beside it, those of each pipeline.
llvm::Expected<SearchOptions> readSearchOptions(const OptionValues &given,
                                                const OptionValues &ofModel);

/// One way, and what its plan says.
struct Configuration {
  int64_t ranks = 1, replicas = 1, zero = 0;
  int64_t microBatchSize = 1, microBatches = 1;
  std::string remat, schedule;
  /// What `schedule` came to.
  std::string chosen;
  /// How the model is cut; empty: as the user said.
  std::string balance;
  /// In which order processes are numbered, where it matters and the user did
  /// not say; empty elsewhere.
  std::string processMap;
  /// Stages on a rank; 0: as the user said, or as the schedule chooses.
  int64_t loops = 0;
  /// Whether hosts keep stashes, as many as copies are in time.
  bool offloads = false;
  /// Whether what is recomputed is tasks of their own.
  bool recomputesEarly = false;
  int64_t stages = 1;
  /// Seconds of a step: of the busiest rank's tasks, by how much sums of
  /// replicas lengthen it, and all others, in which that rank waits.
  double step = 0, work = 0, exposed = 0, waiting = 0;
  /// By how much the busiest rank's tasks take longer than those of all ranks
  /// on average.
  double imbalance = 0;
  /// Of the fullest rank.
  int64_t arenaBytes = 0;
  /// What hosts keep of a rank's stashes, of the rank with most.
  int64_t hostBytes = 0;
  /// Whether memory ruled out schedules that may be faster.
  bool isLimited = false;
  /// Whether no other one that was planned is as fast with less memory.
  bool isOnFront = false;

  /// Whether there may be such tasks: other modes leave what they recompute
  /// where it is read.
  bool hasEarlyTasks() const {
    return recomputesEarly && remat != "none" && remat != "pointwise" &&
           remat != "selective";
  }
  /// What is recomputed, and where else stashes are, for people.
  std::string memoryWords() const;
  /// Whether to simulate its schedules takes a second and more.
  bool isLarge() const {
    constexpr int64_t fewPairs = 1 << 14;
    return ranks * microBatches > fewPairs;
  }
  /// Whether to compare many plans of it takes a few seconds.
  bool isSmall() const {
    constexpr int64_t fewPairs = 1 << 8;
    return ranks * microBatches <= fewPairs;
  }
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
  /// What a command line needs for it beside the options of the model: all that
  /// a search chooses, also where the user did.
  std::string optionsOf(const Configuration &one) const;
  void print(llvm::raw_ostream &os) const;
  llvm::json::Value toJson() const;
  /// Draws memory and time of all that was planned, where that is wanted.
  llvm::Error writePicture() const;

private:
  /// A way that may be planned.
  struct Prospect {
    Configuration one;
    /// Of recomputation: its place among the modes by what they compute again.
    int64_t mode = 0;
    /// No plan of it has a shorter step.
    double bound = 0;
    /// Whether its fastest schedule was estimated, and what that is expected to
    /// take.
    bool isEstimated = false;
    double expected = 0;
    /// In the order in which they were found; -1 before that.
    int64_t number = -1;

    bool operator<(const Prospect &other) const {
      return std::tie(bound, number) < std::tie(other.bound, other.number);
    }
  };
  /// In place of a mode: each rank has its own.
  static constexpr int64_t kEachRank = std::numeric_limits<int64_t>::max();

  /// Plans that are a little slower than the best one say what it gains.
  static constexpr double kOfInterest = 1.05;

  static Configuration summaryOf(Configuration one, const Draft &draft,
                                 const Compilation &compilation);
  llvm::Error checkOptions() const;
  llvm::Expected<std::vector<Configuration>> allWays();
  llvm::Error readLimits(llvm::ArrayRef<Configuration> ways);
  void addWays(Configuration one);
  void addLevels(Configuration one, int64_t mode);
  void addSmallerWays(llvm::ArrayRef<Configuration> ways);
  void push(Prospect prospect);
  void look(Prospect prospect);
  void estimate(Prospect prospect, const CompileOptions &options,
                Compilation &compilation);
  void plan(const Prospect &prospect, const CompileOptions &options,
            Compilation &compilation);
  bool decidesByRank(Configuration &one) const;
  void addEachRank(Configuration one, Compilation &compilation);
  void fail(const Prospect &prospect, const CompileOptions &options,
            const Refusal &refusal);
  void refuse(const Prospect &prospect, llvm::StringRef why);
  bool isDominated(const Prospect &prospect) const;
  Compilation *opened(const CompileOptions &options);
  /// The options of a way, and its model.
  struct Variant {
    CompileOptions options;
    Compilation &compilation;
  };
  /// None where the options do not go together, or there is no such model.
  std::optional<Variant> opened(const Configuration &one);
  void keepStagesOfZero(const Configuration &one,
                        CompileOptions &options) const;
  static int64_t opsOf(const Variant &variant);
  double leastPass(int64_t microBatchSize) const;
  double leastByOthers(const Prospect &prospect) const;
  std::set<Prospect>::iterator next();
  std::vector<Configuration> fastest() const;
  void tryVariants();
  void tryEach(bool estimatesFirst,
               llvm::function_ref<bool(Configuration &)> change);
  static void keepSchedule(Configuration &one);
  /// Whether hosts may keep stashes of it.
  bool movesToHosts(const Configuration &one) const {
    return one.ranks > 1 && !given.isGiven("offload");
  }
  bool mayFit(const Configuration &one);
  bool mayCutBetter(const Configuration &one);
  bool recomputesEarly(const Configuration &one);
  bool tryOffload(Configuration one);
  void tryCuts();
  void tryHosts();
  bool planVariant(const Configuration &one, bool estimatesFirst,
                   bool comparesSchedules = false);
  bool mayCompareSchedules(const Configuration &one, int64_t &ops);
  std::vector<Configuration> smallWays();
  void compareSmallWays();
  std::vector<runtime::ProcessMap> processMapsOf(const Configuration &one);
  void tryProcessMaps();
  void tryWithoutZero();
  std::vector<Configuration> smallestWays() const;
  std::string smallestPlan();
  /// Whether memory does not matter.
  bool isForSpeed() const { return wanted.pareto.empty() && !hasLimit; }
  /// A plan is of use where its step is shorter: the step of the best one, or
  /// of the last of those that are to run. Infinite while there are not as
  /// many.
  double stepToBeat() const {
    const size_t best = std::max<int64_t>(1, wanted.tune);
    return wanted.pareto.empty() && planned.size() >= best
               ? planned[best - 1].step
               : std::numeric_limits<double>::infinity();
  }
  bool isSlower(double step) const;
  bool isTooLargeWithLess(const Configuration &one) const;
  bool isFarTooLarge(const Prospect &prospect, int64_t limit) const;
  void add(Configuration one);
  llvm::StringRef cutOf(const Configuration &one) const;
  void tell(const Configuration &next) const;
  std::string draw() const;

  /// What of the model's ops comparisons of schedules are left for.
  int64_t opsToCompare = 1024;

  const OptionValues given;
  const SearchOptions wanted;
  std::string model;
  /// By the size of their micro-batches.
  std::map<int64_t, std::unique_ptr<Compilation>> models;
  std::optional<int64_t> memoryLimit;
  /// Whether that or the machine limits memory.
  bool hasLimit = false;
  /// The level of ZeRO above which nothing more is shared.
  int64_t highestZero = 3;
  /// By the size of a micro-batch: seconds of its forwards, one after the
  /// other.
  std::map<int64_t, double> passes;
  /// By ranks, size of micro-batches, and level of ZeRO: what no mode of
  /// recomputation shortens.
  std::map<std::tuple<int64_t, int64_t, int64_t>, double> leastOfMore;
  std::set<Prospect> prospects;
  int64_t pushed = 0;
  /// Those that may have been the fastest, and whose plans are not.
  std::vector<Prospect> slowerPlans;
  /// Whose plans take what was expected.
  std::vector<Prospect> attained;
  /// By ranks, size of micro-batches, and mode of recomputation or level of
  /// ZeRO: levels that cannot be compiled, and where each rank was to choose.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> refused;
  std::set<std::tuple<int64_t, int64_t, int64_t>> withEachRank;
  /// Where nothing was planned yet, by all but the size of micro-batches: the
  /// least with which none of the schedules fits. More samples at a time are in
  /// as many micro-batches on their way, or are all of the batch.
  std::map<std::tuple<int64_t, int64_t, int64_t, std::string, bool>, int64_t>
      tooLargeFrom;
  /// By ranks, replicas and level of ZeRO: the least that a rank needs with any
  /// mode of recomputation, of those that do not fit.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> leastOfModes;
  /// By ranks, size of micro-batches, and level of ZeRO: where stashes on hosts
  /// were tried.
  std::set<std::tuple<int64_t, int64_t, int64_t>> withHosts;
  std::vector<Configuration> planned;
  /// What was not planned, or whose plan does not fit.
  int64_t impossible = 0, slower = 0, tooLarge = 0, alike = 0;
  int64_t leastBytes = std::numeric_limits<int64_t>::max();
  /// By what a rank needs at least: ways whose plans do not fit.
  std::multimap<int64_t, Configuration> beyondLimit;
  /// Why nothing was planned, as far as that is known; why the last model could
  /// not be opened.
  std::string reason, unopened;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CONFIGURATIONSEARCH_H
