//===- KeptValues.cpp - What a backward keeps of its forward --------------===//
//
// See KeptValues.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/KeptValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

constexpr size_t mostChoices = 4000;

/// Which values are kept whatever is chosen, and who decides of the others.
struct Roles {
  enum Role : uint8_t {
    /// Results of ops that their own run alone reads.
    Inner,
    /// Given, not needed, and read by one run.
    Given,
    /// There in any case.
    Always
  };
  std::vector<Role> of;
  /// Those of `Always` that take bytes.
  std::vector<int32_t> kept;

  explicit Roles(const ForwardGraph &graph);
};

/// A choice for all ops of a run.
struct RunChoice {
  int64_t bytes = 0, again = 0;
  double seconds = 0;
  std::vector<int32_t> kept;
};

/// Finds the choices of one run that no other one beats.
class RunChooser {
public:
  RunChooser(const ForwardGraph &graph, const Roles &roles,
             llvm::ArrayRef<int32_t> ops);
  std::vector<RunChoice> choices();

private:
  static constexpr int32_t mostOpen = 12;

  /// What has been decided up to an op.
  struct Choice {
    /// The open values that are there in the backward, a bit for each.
    uint32_t available = 0;
    int64_t bytes = 0, again = 0;
    double seconds = 0;
    /// What was kept last, as a place among all such; -1: nothing was.
    int32_t kept = -1;

    auto order() const { return std::tie(available, bytes, again, seconds); }
  };

  bool isOpen(int32_t value) const { return slots[value] >= 0; }
  uint32_t bitOf(int32_t value) const { return 1u << slots[value]; }
  void open(int32_t value);
  Choice keeping(Choice choice, int32_t value);
  void takeGiven(int32_t value);
  void takeOp(const ForwardGraph::Op &op);
  void close(int32_t position, const ForwardGraph::Op &op);
  void dropBeaten();

  const ForwardGraph &graph;
  const Roles &roles;
  const llvm::ArrayRef<int32_t> ops;
  /// By value: the last op of the run that reads it, or -1; its bit, or -1.
  std::vector<int32_t> lastReader, slots;
  uint32_t usedSlots = 0;
  std::vector<Choice> current, next;
  struct Kept {
    int32_t value, before;
  };
  std::vector<Kept> kept;
};

/// Puts choices of runs together.
class RunsChooser {
public:
  RunsChooser(std::vector<std::vector<RunChoice>> runs,
              const ForwardGraph &graph, const Roles &roles);

  KeptValues choose(int64_t forwards, int64_t limit) const;

private:
  /// Of a run, by place among its choices.
  using Places = std::vector<int32_t>;

  /// What runs may make again at a time.
  std::vector<int64_t> limitsOfAgain() const;
  /// The choice for each run of the least time that keeps no more; none where
  /// there is none.
  Places fastest(int64_t mostKept, int64_t mostAgain) const;
  /// The choice for each run of the fewest bytes; none where there is none.
  Places smallest(int64_t mostAgain) const;
  KeptValues sumOf(const Places &places) const;

  const std::vector<std::vector<RunChoice>> runs;
  const std::vector<int32_t> always;
  int64_t alwaysBytes = 0;
};

} // namespace

Roles::Roles(const ForwardGraph &graph) : of(graph.values.size(), Given) {
  std::vector<int32_t> maker(graph.values.size(), -1);
  for (const ForwardGraph::Op &op : graph.ops)
    for (int32_t result : op.results) {
      maker[result] = op.run;
      of[result] = Inner;
    }
  // The first run that reads a given value.
  std::vector<int32_t> reader(graph.values.size(), -1);
  std::vector<bool> isBetween(graph.values.size());
  for (const ForwardGraph::Op &op : graph.ops)
    for (int32_t operand : op.operands) {
      if (of[operand] == Inner)
        isBetween[operand] = isBetween[operand] || maker[operand] != op.run;
      else if (reader[operand] >= 0 && reader[operand] != op.run)
        of[operand] = Always;
      reader[operand] = op.run;
    }
  for (size_t value = 0; value < of.size(); ++value) {
    const bool isGiven = maker[value] < 0;
    if (!isBetween[value] && !(isGiven && graph.values[value].isNeeded))
      continue;
    of[value] = Always;
    kept.push_back(static_cast<int32_t>(value));
  }
}

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

RunChooser::RunChooser(const ForwardGraph &graph, const Roles &roles,
                       llvm::ArrayRef<int32_t> ops)
    : graph(graph), roles(roles), ops(ops), lastReader(graph.values.size(), -1),
      slots(graph.values.size(), -1) {
  for (int32_t op : ops)
    for (int32_t operand : graph.ops[op].operands)
      lastReader[operand] = op;
}

void RunChooser::open(int32_t value) {
  if (lastReader[value] < 0)
    return;
  for (int32_t slot = 0; slot < mostOpen; ++slot)
    if (!(usedSlots & 1u << slot)) {
      usedSlots |= 1u << slot;
      slots[value] = slot;
      return;
    }
}

RunChooser::Choice RunChooser::keeping(Choice choice, int32_t value) {
  choice.bytes += graph.values[value].bytes;
  if (isOpen(value))
    choice.available |= bitOf(value);
  kept.push_back({value, choice.kept});
  choice.kept = static_cast<int32_t>(kept.size()) - 1;
  return choice;
}

/// Before the first op that reads it.
void RunChooser::takeGiven(int32_t value) {
  open(value);
  // Without a bit nobody could tell that it is there.
  if (!isOpen(value))
    return;
  next = current;
  for (const Choice &choice : current)
    next.push_back(keeping(choice, value));
  std::swap(current, next);
}

void RunChooser::takeOp(const ForwardGraph::Op &op) {
  uint32_t needs = 0;
  bool canRepeat = true;
  for (int32_t operand : op.operands) {
    if (roles.of[operand] == Roles::Always)
      continue;
    canRepeat &= isOpen(operand);
    if (isOpen(operand))
      needs |= bitOf(operand);
  }
  uint32_t makes = 0;
  int64_t made = 0;
  for (int32_t result : op.results) {
    if (roles.of[result] == Roles::Always)
      continue;
    open(result);
    if (graph.values[result].isNeeded)
      made += graph.values[result].bytes;
    if (isOpen(result))
      makes |= bitOf(result);
  }
  next.clear();
  for (const Choice &choice : current) {
    if (canRepeat && (choice.available & needs) == needs) {
      Choice repeated = choice;
      repeated.available |= makes;
      repeated.seconds += op.seconds;
      repeated.again += made;
      next.push_back(repeated);
    }
    // What is kept instead: all that is needed, and any of the others.
    const size_t begin = next.size();
    next.push_back(choice);
    for (int32_t result : op.results) {
      if (roles.of[result] == Roles::Always)
        continue;
      const size_t end = next.size();
      for (size_t i = begin; i < end; ++i)
        if (graph.values[result].isNeeded)
          next[i] = keeping(next[i], result);
        else if (isOpen(result))
          next.push_back(keeping(next[i], result));
    }
  }
  std::swap(current, next);
}

/// Nobody asks for values any more that no later op reads.
void RunChooser::close(int32_t position, const ForwardGraph::Op &op) {
  for (int32_t operand : op.operands)
    if (isOpen(operand) && lastReader[operand] == position) {
      for (Choice &choice : current)
        choice.available &= ~bitOf(operand);
      usedSlots &= ~bitOf(operand);
      slots[operand] = -1;
    }
}

void RunChooser::dropBeaten() {
  llvm::sort(current, [](const Choice &a, const Choice &b) {
    return a.order() < b.order();
  });
  next.clear();
  // Of choices with the same values there and no more bytes kept, those that
  // are faster the more they make again.
  std::map<int64_t, double> fastest;
  for (const Choice &choice : current) {
    if (next.empty() || next.back().available != choice.available)
      fastest.clear();
    auto behind = fastest.upper_bound(choice.again);
    if (behind != fastest.begin() &&
        std::prev(behind)->second <= choice.seconds)
      continue;
    while (behind != fastest.end() && behind->second >= choice.seconds)
      behind = fastest.erase(behind);
    fastest[choice.again] = choice.seconds;
    next.push_back(choice);
  }
  std::swap(current, next);
  if (current.size() <= mostChoices)
    return;
  // With about as many bytes, the fastest; and those of the fewest bytes, which
  // come first.
  int64_t most = 0;
  for (const Choice &choice : current)
    most = std::max({most, choice.bytes, choice.again});
  const int64_t width = most / 64 + 1;
  std::map<std::tuple<uint32_t, int64_t, int64_t>, Choice> best;
  for (const Choice &choice : current) {
    auto fewest = best.try_emplace({choice.available, -1, 0}, choice);
    if (fewest.second)
      continue;
    auto [place, isNew] = best.try_emplace(
        {choice.available, choice.bytes / width, choice.again / width}, choice);
    if (!isNew && choice.seconds < place->second.seconds)
      place->second = choice;
  }
  current.clear();
  for (const auto &[key, choice] : best)
    current.push_back(choice);
}

std::vector<RunChoice> RunChooser::choices() {
  current.assign(1, {});
  std::vector<bool> isTaken(graph.values.size());
  for (int32_t number : ops) {
    const ForwardGraph::Op &op = graph.ops[number];
    for (int32_t operand : op.operands)
      if (roles.of[operand] == Roles::Given && !isTaken[operand]) {
        isTaken[operand] = true;
        takeGiven(operand);
      }
    takeOp(op);
    close(number, op);
    dropBeaten();
  }
  std::vector<RunChoice> found;
  for (const Choice &choice : current) {
    found.push_back({choice.bytes, choice.again, choice.seconds, {}});
    for (int32_t last = choice.kept; last >= 0; last = kept[last].before)
      found.back().kept.push_back(kept[last].value);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// All runs
//===----------------------------------------------------------------------===//

RunsChooser::RunsChooser(std::vector<std::vector<RunChoice>> all,
                         const ForwardGraph &graph, const Roles &roles)
    : runs(std::move(all)), always(roles.kept) {
  for (int32_t value : always)
    alwaysBytes += graph.values[value].bytes;
}

std::vector<int64_t> RunsChooser::limitsOfAgain() const {
  constexpr size_t mostLimits = 32;
  std::vector<int64_t> all = {0};
  for (const std::vector<RunChoice> &choices : runs)
    for (const RunChoice &choice : choices)
      all.push_back(choice.again);
  llvm::sort(all);
  all.erase(llvm::unique(all), all.end());
  if (all.size() <= mostLimits)
    return all;
  std::vector<int64_t> some;
  for (size_t i = 0; i < mostLimits; ++i)
    some.push_back(all[i * (all.size() - 1) / (mostLimits - 1)]);
  return some;
}

RunsChooser::Places RunsChooser::fastest(int64_t mostKept,
                                         int64_t mostAgain) const {
  struct Sum {
    int64_t bytes = 0;
    double seconds = 0;
    /// Among the sums without the last run, and of that run.
    int32_t before = -1, place = -1;
  };
  auto isSmaller = [](const Sum &a, const Sum &b) {
    return std::tie(a.bytes, a.seconds) < std::tie(b.bytes, b.seconds);
  };
  // Bytes ascending, seconds descending.
  auto dropBeaten = [&](std::vector<Sum> &sums) {
    llvm::sort(sums, isSmaller);
    size_t count = 0;
    for (const Sum &sum : sums)
      if (count == 0 || sum.seconds < sums[count - 1].seconds)
        sums[count++] = sum;
    sums.resize(count);
  };
  std::vector<std::vector<Sum>> sums = {{Sum()}};
  if (mostKept < 0)
    return {};
  for (const std::vector<RunChoice> &choices : runs) {
    std::vector<Sum> own;
    for (auto [place, choice] : llvm::enumerate(choices))
      if (choice.again <= mostAgain)
        own.push_back(
            {choice.bytes, choice.seconds, -1, static_cast<int32_t>(place)});
    dropBeaten(own);
    std::vector<Sum> next;
    auto forEachSum = [&](llvm::function_ref<void(const Sum &)> visit) {
      for (auto [number, sum] : llvm::enumerate(sums.back()))
        for (const Sum &one : own)
          if (sum.bytes <= mostKept - one.bytes)
            visit({sum.bytes + one.bytes, sum.seconds + one.seconds,
                   static_cast<int32_t>(number), one.place});
    };
    // Many are not all sorted: of those with nearly as many bytes, the fastest.
    constexpr size_t many = 4 * mostChoices;
    if (sums.back().size() * own.size() <= many) {
      forEachSum([&](const Sum &sum) { next.push_back(sum); });
    } else {
      const int64_t width = mostKept / static_cast<int64_t>(many) + 1;
      std::vector<Sum> fastest(mostKept / width + 1);
      forEachSum([&](const Sum &sum) {
        Sum &known = fastest[sum.bytes / width];
        if (known.place < 0 || std::tie(sum.seconds, sum.bytes) <
                                   std::tie(known.seconds, known.bytes))
          known = sum;
      });
      llvm::copy_if(fastest, std::back_inserter(next),
                    [](const Sum &sum) { return sum.place >= 0; });
    }
    dropBeaten(next);
    if (next.size() > mostChoices) {
      const int64_t width = mostKept / static_cast<int64_t>(mostChoices) + 1;
      size_t count = 0;
      for (size_t i = 0; i < next.size(); ++i)
        if (i + 1 == next.size() ||
            next[i].bytes / width != next[i + 1].bytes / width)
          next[count++] = next[i];
      next.resize(count);
    }
    if (next.empty())
      return {};
    sums.push_back(std::move(next));
  }
  Places places(runs.size());
  auto last = static_cast<int32_t>(sums.back().size()) - 1;
  for (size_t run = runs.size(); run-- > 0;) {
    const Sum &sum = sums[run + 1][last];
    places[run] = sum.place;
    last = sum.before;
  }
  return places;
}

RunsChooser::Places RunsChooser::smallest(int64_t mostAgain) const {
  Places places;
  for (const std::vector<RunChoice> &choices : runs) {
    int32_t best = -1;
    for (auto [place, choice] : llvm::enumerate(choices))
      if (choice.again <= mostAgain &&
          (best < 0 ||
           std::tie(choice.bytes, choice.seconds) <
               std::tie(choices[best].bytes, choices[best].seconds)))
        best = static_cast<int32_t>(place);
    if (best < 0)
      return {};
    places.push_back(best);
  }
  return places;
}

KeptValues RunsChooser::sumOf(const Places &places) const {
  KeptValues sum{always, alwaysBytes, 0, 0};
  for (auto [choices, place] : llvm::zip_equal(runs, places)) {
    const RunChoice &choice = choices[place];
    llvm::append_range(sum.values, choice.kept);
    sum.bytes += choice.bytes;
    sum.again = std::max(sum.again, choice.again);
    sum.seconds += choice.seconds;
  }
  llvm::sort(sum.values);
  return sum;
}

KeptValues RunsChooser::choose(int64_t forwards, int64_t limit) const {
  KeptValues best;
  bool isWithin = false;
  for (int64_t again : limitsOfAgain()) {
    const Places places =
        fastest((limit - again) / forwards - alwaysBytes, again);
    if (again > limit || places.size() != runs.size())
      continue;
    const KeptValues sum = sumOf(places);
    if (sum.bytesOf(forwards) <= limit &&
        (!isWithin || sum.seconds < best.seconds)) {
      best = sum;
      isWithin = true;
    }
  }
  if (isWithin)
    return best;
  bool isFound = false;
  for (int64_t again : limitsOfAgain()) {
    const Places places = smallest(again);
    if (places.size() != runs.size())
      continue;
    const KeptValues sum = sumOf(places);
    if (!isFound || sum.bytesOf(forwards) < best.bytesOf(forwards))
      best = sum;
    isFound = true;
  }
  return best;
}

bool KeptValues::isBetter(const KeptValues &other, int64_t forwards,
                          int64_t limit) const {
  const int64_t own = bytesOf(forwards), others = other.bytesOf(forwards);
  return own <= limit && others <= limit ? seconds < other.seconds
                                         : own < others;
}

static RunsChooser chooserOf(const ForwardGraph &graph) {
  const Roles roles(graph);
  std::map<int32_t, std::vector<int32_t>> runs;
  for (auto [number, op] : llvm::enumerate(graph.ops))
    runs[op.run].push_back(static_cast<int32_t>(number));
  std::vector<std::vector<RunChoice>> choices;
  for (const auto &[run, ops] : runs)
    choices.push_back(RunChooser(graph, roles, ops).choices());
  return {std::move(choices), graph, roles};
}

struct KeptChooser::Known {
  ForwardGraph graph;
  RunsChooser chooser;
};

KeptChooser::KeptChooser() = default;
KeptChooser::~KeptChooser() = default;

KeptValues KeptChooser::choose(const ForwardGraph &graph, int64_t forwards,
                               int64_t limit) {
  auto found = llvm::find_if(
      known, [&](const auto &each) { return each->graph == graph; });
  if (found == known.end())
    found = known.insert(
        found, std::make_unique<Known>(Known{graph, chooserOf(graph)}));
  return (*found)->chooser.choose(forwards, limit);
}

} // namespace pipewright
