//===- KeptValues.cpp - What a backward keeps of its forward --------------===//
//
// See KeptValues.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/KeptValues.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace pipewright {

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// What has been decided up to an op.
struct Choice {
  /// The open values that are there in the backward, a bit for each.
  uint32_t available = 0;
  int64_t bytes = 0;
  double seconds = 0;
  /// What was kept last, as a place among all such; -1: nothing was.
  int32_t kept = -1;

  auto order() const { return std::tie(available, bytes, seconds); }
};

class Chooser {
public:
  explicit Chooser(const ForwardGraph &graph);

  /// Choices of all ops: the one of least time within the limit, or of the
  /// fewest bytes where there is none. False if nothing is within the limit.
  bool choose(int64_t limit, KeptValues &best);

private:
  static constexpr int32_t mostOpen = 12;
  static constexpr size_t mostChoices = 20000;

  bool isOpen(int32_t value) const { return slots[value] >= 0; }
  uint32_t bitOf(int32_t value) const { return 1u << slots[value]; }
  void open(int32_t value);
  Choice keeping(Choice choice, int32_t value);
  void takeGiven(int32_t value);
  void takeOp(const ForwardGraph::Op &op);
  void close(int32_t position, const ForwardGraph::Op &op);
  void dropBeaten();

  const ForwardGraph &graph;
  /// By value: whether no op makes it; the last op that reads it, or -1; its
  /// bit, or -1.
  std::vector<bool> isGiven;
  std::vector<int32_t> lastReader, slots;
  uint32_t usedSlots = 0;
  int64_t limit = unlimited;
  std::vector<Choice> choices, next;
  struct Kept {
    int32_t value, before;
  };
  std::vector<Kept> kept;
};

} // namespace

Chooser::Chooser(const ForwardGraph &graph)
    : graph(graph), isGiven(graph.values.size(), true),
      lastReader(graph.values.size(), -1), slots(graph.values.size(), -1) {
  for (auto [position, op] : llvm::enumerate(graph.ops)) {
    for (int32_t operand : op.operands)
      lastReader[operand] = static_cast<int32_t>(position);
    for (int32_t result : op.results)
      isGiven[result] = false;
  }
}

void Chooser::open(int32_t value) {
  if (lastReader[value] < 0)
    return;
  for (int32_t slot = 0; slot < mostOpen; ++slot)
    if (!(usedSlots & 1u << slot)) {
      usedSlots |= 1u << slot;
      slots[value] = slot;
      return;
    }
}

Choice Chooser::keeping(Choice choice, int32_t value) {
  choice.bytes += graph.values[value].bytes;
  if (isOpen(value))
    choice.available |= bitOf(value);
  kept.push_back({value, choice.kept});
  choice.kept = static_cast<int32_t>(kept.size()) - 1;
  return choice;
}

/// Before the first op that reads it.
void Chooser::takeGiven(int32_t value) {
  open(value);
  next.clear();
  for (const Choice &choice : choices) {
    if (!graph.values[value].isNeeded)
      next.push_back(choice);
    // Without a bit nobody else could tell that it is there.
    if (graph.values[value].isNeeded || isOpen(value))
      next.push_back(keeping(choice, value));
  }
  std::swap(choices, next);
}

void Chooser::takeOp(const ForwardGraph::Op &op) {
  uint32_t needs = 0;
  bool canRepeat = true;
  for (int32_t operand : op.operands) {
    canRepeat &= isOpen(operand);
    if (isOpen(operand))
      needs |= bitOf(operand);
  }
  uint32_t makes = 0;
  for (int32_t result : op.results) {
    open(result);
    if (isOpen(result))
      makes |= bitOf(result);
  }
  next.clear();
  for (const Choice &choice : choices) {
    if (canRepeat && (choice.available & needs) == needs) {
      Choice repeated = choice;
      repeated.available |= makes;
      repeated.seconds += op.seconds;
      next.push_back(repeated);
    }
    // What is kept instead: all that is needed, and any of the others.
    const size_t begin = next.size();
    next.push_back(choice);
    for (int32_t result : op.results) {
      const size_t end = next.size();
      for (size_t i = begin; i < end; ++i)
        if (graph.values[result].isNeeded)
          next[i] = keeping(next[i], result);
        else if (isOpen(result))
          next.push_back(keeping(next[i], result));
    }
  }
  std::swap(choices, next);
}

/// Nobody asks for values any more that no later op reads.
void Chooser::close(int32_t position, const ForwardGraph::Op &op) {
  for (int32_t operand : op.operands)
    if (isOpen(operand) && lastReader[operand] == position) {
      for (Choice &choice : choices)
        choice.available &= ~bitOf(operand);
      usedSlots &= ~bitOf(operand);
      slots[operand] = -1;
    }
}

void Chooser::dropBeaten() {
  llvm::erase_if(choices,
                 [&](const Choice &choice) { return choice.bytes > limit; });
  llvm::sort(choices, [](const Choice &a, const Choice &b) {
    return a.order() < b.order();
  });
  next.clear();
  for (const Choice &choice : choices)
    if (next.empty() || next.back().available != choice.available ||
        (limit != unlimited && choice.seconds < next.back().seconds))
      next.push_back(choice);
  std::swap(choices, next);
  if (choices.size() <= mostChoices)
    return;
  // Of those with about as many bytes the fastest, and so the last one.
  size_t masks = 1;
  for (size_t i = 1; i < choices.size(); ++i)
    masks += choices[i].available != choices[i - 1].available;
  const int64_t width = std::max<int64_t>(
      1,
      limit / static_cast<int64_t>(std::max<size_t>(1, mostChoices / masks)));
  next.clear();
  for (size_t i = 0; i < choices.size(); ++i)
    if (i + 1 == choices.size() ||
        choices[i].available != choices[i + 1].available ||
        choices[i].bytes / width != choices[i + 1].bytes / width)
      next.push_back(choices[i]);
  std::swap(choices, next);
}

bool Chooser::choose(int64_t within, KeptValues &best) {
  limit = within;
  choices.assign(1, {});
  kept.clear();
  std::vector<bool> isTaken(graph.values.size());
  for (auto [value, isOnlyGiven] : llvm::enumerate(isGiven))
    if (isOnlyGiven && lastReader[value] < 0) {
      isTaken[value] = true;
      if (graph.values[value].isNeeded)
        choices.front() = keeping(choices.front(), static_cast<int32_t>(value));
    }
  for (auto [position, op] : llvm::enumerate(graph.ops)) {
    for (int32_t operand : op.operands)
      if (isGiven[operand] && !isTaken[operand]) {
        isTaken[operand] = true;
        takeGiven(operand);
      }
    takeOp(op);
    close(static_cast<int32_t>(position), op);
    dropBeaten();
  }
  const auto least =
      llvm::min_element(choices, [](const Choice &a, const Choice &b) {
        return std::tie(a.seconds, a.bytes) < std::tie(b.seconds, b.bytes);
      });
  if (least == choices.end() || least->bytes > limit)
    return false;
  best = {{}, least->bytes, least->seconds};
  for (int32_t last = least->kept; last >= 0; last = kept[last].before)
    best.values.push_back(kept[last].value);
  llvm::sort(best.values);
  return true;
}

KeptValues chooseKept(const ForwardGraph &graph, int64_t limit) {
  KeptValues best;
  if (!Chooser(graph).choose(std::min(limit, unlimited - 1), best))
    Chooser(graph).choose(unlimited, best);
  return best;
}

} // namespace pipewright
