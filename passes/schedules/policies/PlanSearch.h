//===- PlanSearch.h - Compares schedules of one size ------------*- C++ -*-===//
//
// What `auto` does once the placement is known: simulates policies and list
// schedules, and keeps the best that is allowed.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_PLANSEARCH_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_PLANSEARCH_H

#include "passes/schedules/ListScheduler.h"
#include "passes/schedules/Policy.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::schedules {

/// A way to make a list schedule.
struct Recipe {
  enum class First : uint8_t { DeepestForward, GroupsOfForwards, LikeBest };
  /// Stashes of a rank's share: as many as the user allows; 2P-1; or, fewer on
  /// later ranks, 2(P-r)-1 and what goes round in loops.
  enum class Room : uint8_t { All, Flat, Falling };

  First first = First::DeepestForward;
  bool splits = false;
  Room room = Room::All;
  double patience = 0;

  /// `list schedule, deepest forward first, I and W`; `best` is the named
  /// schedule that it may follow.
  std::string describe(llvm::StringRef best) const;
  bool operator==(const Recipe &other) const = default;
};

/// Those worth a try, the best first: found by looking at which of many ever
/// won on stages of random times.
llvm::ArrayRef<Recipe> allRecipes();

/// What the user allows.
struct PlanLimits {
  /// Stashes of a rank's share of the model, and bytes, on every rank; -1 for
  /// any.
  int64_t shares = -1;
  int64_t bytes = -1;
  bool splits = true;

  /// By the parameters of `auto`.
  static PlanLimits of(const ScheduleOptions &options);
  /// Whether a simulation of a schedule stays within them.
  bool hold(const Schedule &schedule, const Simulation &simulation) const;
};

/// Whether `auto` may choose a policy within the limits: one copy of the model,
/// one update per step, and nothing that chooses itself.
bool canBeChosen(const Policy &policy, const ScheduleOptions &options,
                 const PlanLimits &limits);

/// Where named policies of one copy of the model put stages, each placement
/// once, with stages that go round the ranks first.
std::vector<Placement> placementsFor(const ScheduleOptions &options);

/// What it stashes: the peak of the rank that keeps most, in bytes, or in pairs
/// of stage and micro-batch where no bytes are known.
int64_t peakOf(const Simulation &simulation, bool hasBytes);

/// The first recipe that the limits allow.
inline Recipe firstRecipe(const PlanLimits &limits) {
  return *llvm::find_if(allRecipes(), [&](const Recipe &recipe) {
    return recipe.splits == limits.splits;
  });
}

class PlanSearch {
public:
  /// `frame` is a schedule without order; `self` is not asked for one. All
  /// have to outlive the search.
  PlanSearch(const Policy &self, const Schedule &frame,
             const ScheduleOptions &options, const TaskCosts &costs,
             const PlanLimits &limits);

  /// Tries all policies with one copy of the model, one update per step, the
  /// frame's placement, and backwards in ascending order.
  void tryPolicies();
  /// Tries a recipe as far as it may beat the best so far.
  void tryRecipe(const Recipe &recipe);
  void tryRecipes(llvm::ArrayRef<Recipe> recipes) {
    for (const Recipe &recipe : recipes)
      tryRecipe(recipe);
  }
  /// The recipes, shortest step first, whether or not any beats what was found.
  std::vector<Recipe> ranked(llvm::ArrayRef<Recipe> recipes);

  bool hasFound() const { return found.step < infinity; }
  double stepTime() const { return found.step; }
  /// The best schedule, with its updates and where it comes from.
  Schedule take() { return std::move(found.schedule); }
  /// Why there is nothing.
  llvm::Error explain() const;

private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Found {
    Schedule schedule;
    double step = infinity;
    int64_t peak = 0;
  };

  void tryPolicy(const Policy &policy);
  void tryPolicy(const Policy &policy, const ScheduleOptions &its);
  double offer(const Schedule &candidate, const Simulation &simulation,
               std::string origin);
  double stepOf(const Recipe &recipe, double most);
  std::vector<RankLimit> limitsOf(Recipe::Room room) const;

  const Policy &self;
  const Schedule &frame;
  const ScheduleOptions &options;
  const TaskCosts &costs;
  const PlanLimits &limits;
  std::vector<int64_t> stagesOfRank;
  bool hasStashBytes;
  /// Of list schedules, by whether they split backwards.
  double leastOfHalves, leastOfWhole;

  Found found;
  /// The best that is not a list schedule, for recipes that follow it.
  Schedule named;
  bool namedSplits = false;
  std::string reason;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_PLANSEARCH_H
