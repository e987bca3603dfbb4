//===- KernelGroups.cpp - which ops become one kernel ---------------------===//

#include "passes/nn/kernels/KernelGroups.h"

#include "dialects/nn/NNOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <iterator>
#include <map>
#include <vector>

using namespace mlir;

namespace pipewright::nn {

static RowSpace spaceOf(Operation *op) {
  return cast<KernelOpInterface>(op).getRowSpace();
}

bool isLeaf(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getRowSpace().walk == RowWalk::Leaf;
}

Value stripReshapes(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>())
    value = view->getOperand(0);
  return value;
}

bool mayMoveInKernel(OpResult value) {
  // Moving what was just moved is only another address; what is cheap can be
  // computed where its result goes.
  RowSpace space = spaceOf(value.getOwner());
  return value.hasOneUse() && (space.moves() || space.walk == RowWalk::Cheap);
}

void walkOutsideKernels(ModuleOp module,
                        function_ref<void(Operation *)> visit) {
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ModuleOp>(op) && op != module)
      return WalkResult::skip();
    visit(op);
    return WalkResult::advance();
  });
}

/// Planning a kernel, and LLVM's passes over it, take more than linear time.
static constexpr size_t kMostOps = 256;

/// Parts of a concat that may be computed where they are joined.
static constexpr size_t kMostComputedParts = 8;

namespace {

/// A kernel in the making.
struct Draft : KernelGroup {
  Draft(Operation *op, int64_t position)
      : first(position), last(position), isPointwise(spaceOf(op).isPointwise()),
        reduces(spaceOf(op).walk == RowWalk::Rows),
        isInlinable(spaceOf(op).walk == RowWalk::Cheap || spaceOf(op).moves()) {
    ops = {op};
    elements = spaceOf(op).elements;
    columns = spaceOf(op).columns;
  }

  /// Takes all of the other; what they compute on has been found already.
  void take(Draft &other) {
    // The longer list stays where it is.
    if (ops.size() < other.ops.size())
      std::swap(ops, other.ops);
    llvm::append_range(ops, other.ops);
    other.ops.clear();
    first = std::min(first, other.first);
    last = std::max(last, other.last);
    isPointwise &= other.isPointwise;
    reduces |= other.reduces;
    isInlinable &= other.isInlinable;
  }

  /// In the block.
  int64_t first, last;
  /// All ops are.
  bool isPointwise;
  /// Some op is a pass over rows.
  bool reduces;
  /// All ops can be computed again wherever their results are used.
  bool isInlinable;
};

/// Ranges of positions in which kernels lie, joined where they overlap. What
/// lies outside of the ranges of two ops is on no path between them, even where
/// paths go through kernels, which lead from their last op to their first.
class Spans {
public:
  void add(int64_t first, int64_t last) {
    auto next = spans.upper_bound(first);
    if (next != spans.begin() && std::prev(next)->second >= first)
      --next;
    while (next != spans.end() && next->first <= last) {
      first = std::min(first, next->first);
      last = std::max(last, next->second);
      next = spans.erase(next);
    }
    spans[first] = last;
  }
  /// The range that a position lies in: itself, where no kernel does.
  std::pair<int64_t, int64_t> around(int64_t position) const {
    auto next = spans.upper_bound(position);
    if (next != spans.begin() && std::prev(next)->second >= position)
      return *std::prev(next);
    return {position, position};
  }

private:
  std::map<int64_t, int64_t> spans;
};

/// Each step takes time in proportion to the smaller of two groups, and to what
/// lies between them.
class Grouping {
public:
  explicit Grouping(Block &block) : block(block) {}

  SmallVector<KernelGroup> run();

private:
  static constexpr unsigned none = ~0u;

  /// May `consumer` use `value`, a result of another op of its kernel?
  bool canFeed(OpResult value, Operation *consumer);
  /// Whether an op can be computed again for little, with all of its kernel
  /// that it is computed from.
  bool isCheap(Operation *op);
  bool edgesFit(unsigned from, unsigned to);
  bool staysInside(unsigned group, unsigned other);
  bool findSpace(unsigned producer, unsigned consumer, KernelGroup &merged);
  bool comesTo(
      unsigned group, std::pair<int64_t, int64_t> within,
      SmallVector<Operation *> begin,
      function_ref<void(Operation *, function_ref<void(Operation *)>)> next);
  bool createsCycle(unsigned from, unsigned to);
  /// The group of an op, `none` where it has none.
  unsigned groupOf(Operation *op);
  bool tryMerge(unsigned producer, unsigned consumer);

  Block &block;
  std::vector<Draft> groups;
  /// The group that an op began as, and the one that each was merged into.
  DenseMap<Operation *, unsigned> begunAs;
  SmallVector<unsigned> mergedInto;
  DenseMap<Operation *, int64_t> positions;
  Spans spans;
};

} // namespace

/// All that uses a value, views of it left out.
template <class Visit>
static void forEachUser(Value value, Visit visit) {
  SmallVector<Operation *> users(value.getUsers());
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (isa<ViewOpInterface>(user))
      llvm::append_range(users, user->getUsers());
    else
      visit(user);
  }
}

unsigned Grouping::groupOf(Operation *op) {
  auto found = begunAs.find(op);
  if (found == begunAs.end())
    return none;
  unsigned group = found->second;
  while (mergedInto[group] != group)
    group = mergedInto[group] = mergedInto[mergedInto[group]];
  return found->second = group;
}

/// A loss and its gradient read the same logits: one pass serves both.
static bool isLossOfGradient(OpResult value, Operation *consumer) {
  auto loss = dyn_cast<SoftmaxCrossEntropyOp>(value.getOwner());
  auto gradient = dyn_cast<SoftmaxCrossEntropyBackwardOp>(consumer);
  return loss && gradient &&
         (value == loss.getLargest() || value == loss.getSum()) &&
         gradient.getLogits() == loss.getLogits() &&
         gradient.getLabels() == loss.getLabels();
}

/// Whether `value` is the logits of a loss, and of its gradient, and nothing
/// else.
static bool isOnlyLogits(Value value) {
  bool isOnly = true;
  forEachUser(value, [&](Operation *user) {
    Value logits;
    if (auto loss = dyn_cast<SoftmaxCrossEntropyOp>(user))
      logits = loss.getLogits();
    else if (auto gradient = dyn_cast<SoftmaxCrossEntropyBackwardOp>(user))
      logits = gradient.getLogits();
    isOnly &= logits && stripReshapes(logits) == value;
  });
  return isOnly;
}

/// Whoever computes an element of such a concat would look for its part among
/// many, unless all parts are copied as they are.
static bool joinsManyParts(Operation *op) {
  auto concat = dyn_cast<ConcatOp>(op);
  return concat && concat.getInputs().size() > kMostComputedParts;
}

bool Grouping::isCheap(Operation *op) {
  llvm::SetVector<Operation *> needed;
  needed.insert(op);
  for (size_t i = 0; i < needed.size(); ++i) {
    RowSpace space = spaceOf(needed[i]);
    if (space.walk != RowWalk::Cheap && !space.moves())
      return false;
    for (Value operand : needed[i]->getOperands()) {
      Operation *producer = stripReshapes(operand).getDefiningOp();
      if (producer && groupOf(producer) == groupOf(op))
        needed.insert(producer);
    }
  }
  return true;
}

bool Grouping::canFeed(OpResult value, Operation *consumer) {
  if (isLossOfGradient(value, consumer))
    return true;
  RowSpace from = spaceOf(value.getOwner()), to = spaceOf(consumer);
  ResultForm form = from.results[value.getResultNumber()];
  if (form != ResultForm::Element && form != ResultForm::Row)
    return false;
  // Several nests would compute the producer several times: what is cheap is
  // still cheaper than to write and read it.
  if (to.walk == RowWalk::Several)
    return isOnlyLogits(value) && isCheap(value.getOwner());
  if (to.walk == RowWalk::Transposition)
    return false;
  if (to.walk == RowWalk::Move) {
    if (joinsManyParts(consumer) && !isa<SliceOp>(value.getOwner()))
      return false;
    return mayMoveInKernel(value);
  }
  // A pass over strided rows costs too much to be repeated.
  return from.walk != RowWalk::Transposition || to.isPointwise();
}

/// Checks all direct uses of results of `from` in `to`.
bool Grouping::edgesFit(unsigned from, unsigned to) {
  bool fits = true;
  if (groups[from].ops.size() < groups[to].ops.size()) {
    for (Operation *op : groups[from].ops)
      for (OpResult result : op->getResults())
        forEachUser(result, [&](Operation *user) {
          fits = fits && (groupOf(user) != to || canFeed(result, user));
        });
    return fits;
  }
  for (Operation *op : groups[to].ops)
    for (Value operand : op->getOperands()) {
      Value source = stripReshapes(operand);
      Operation *producer = source.getDefiningOp();
      fits = fits && (!producer || groupOf(producer) != from ||
                      canFeed(cast<OpResult>(source), op));
    }
  return fits;
}

/// True if no op outside of the two groups uses a result of `group`.
bool Grouping::staysInside(unsigned group, unsigned other) {
  bool stays = true;
  for (Operation *op : groups[group].ops)
    for (Value result : op->getResults())
      forEachUser(result, [&](Operation *user) {
        unsigned its = groupOf(user);
        stays = stays && (its == group || its == other);
      });
  return stays;
}

bool Grouping::findSpace(unsigned from, unsigned to, KernelGroup &merged) {
  const Draft &producer = groups[from], &consumer = groups[to];
  if (producer.elements == consumer.elements) {
    merged.elements = producer.elements;
    for (int64_t columns : producer.columns)
      if (llvm::is_contained(consumer.columns, columns))
        merged.columns.push_back(columns);
    if (!merged.columns.empty())
      return true;
  }
  // One value per row that the producer has reduced.
  if (producer.elements > consumer.elements) {
    merged.elements = producer.elements;
    if (producer.reduces && consumer.isPointwise)
      for (int64_t columns : producer.columns)
        if (consumer.elements * columns == producer.elements)
          merged.columns.push_back(columns);
    if (!merged.columns.empty())
      return true;
  }
  // What is cheap, or only one number, is computed where it is used.
  merged.elements = consumer.elements;
  merged.columns = consumer.columns;
  bool single = producer.elements == 1 && producer.isPointwise;
  return !merged.columns.empty() && (single || producer.isInlinable) &&
         staysInside(from, to);
}

/// Whether a search that begins at some ops comes to one of `group`. `next`
/// calls its argument for each op that an op leads to. A kernel is one: whoever
/// comes to an op of it comes to all.
bool Grouping::comesTo(
    unsigned group, std::pair<int64_t, int64_t> within,
    SmallVector<Operation *> begin,
    function_ref<void(Operation *, function_ref<void(Operation *)>)> next) {
  SmallVector<Operation *> waiting;
  llvm::SmallDenseSet<Operation *, 16> seen;
  llvm::SmallDenseSet<unsigned, 16> seenGroups;
  bool isFound = false;
  auto reach = [&](Operation *op) {
    int64_t position = positions.lookup(op);
    if (position < within.first || position > within.second ||
        !seen.insert(op).second)
      return;
    waiting.push_back(op);
    isFound |= groupOf(op) == group;
  };
  llvm::for_each(begin, reach);
  while (!waiting.empty() && !isFound) {
    Operation *op = waiting.pop_back_val();
    unsigned its = groupOf(op);
    if (its == none)
      next(op, reach);
    else if (seenGroups.insert(its).second)
      for (Operation *member : groups[its].ops)
        next(member, reach);
  }
  return isFound;
}

/// Whether a path leads from `from` to `to`, or back, by way of what is in
/// neither. `to` is where the search begins: what it is merged of comes last.
bool Grouping::createsCycle(unsigned from, unsigned to) {
  std::pair<int64_t, int64_t> within = {
      spans.around(std::min(groups[from].first, groups[to].first)).first,
      spans.around(std::max(groups[from].last, groups[to].last)).second};
  auto isBetween = [&](Operation *op) {
    unsigned its = groupOf(op);
    return its == none || (its != from && its != to);
  };
  SmallVector<Operation *> producers, users;
  for (Operation *op : groups[to].ops) {
    for (Value operand : op->getOperands())
      if (Operation *producer = stripReshapes(operand).getDefiningOp();
          producer && producer->getBlock() == &block && isBetween(producer))
        producers.push_back(producer);
    for (Value result : op->getResults())
      forEachUser(result, [&](Operation *user) {
        user = block.findAncestorOpInBlock(*user);
        if (isBetween(user))
          users.push_back(user);
      });
  }
  using Visit = function_ref<void(Operation *)>;
  auto toProducers = [&](Operation *op, Visit visit) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && producer->getBlock() == &block)
          visit(producer);
    });
  };
  auto toUsers = [&](Operation *op, Visit visit) {
    for (Operation *user : op->getUsers())
      visit(block.findAncestorOpInBlock(*user));
  };
  return comesTo(from, within, std::move(producers), toProducers) ||
         comesTo(from, within, std::move(users), toUsers);
}

bool Grouping::tryMerge(unsigned from, unsigned to) {
  if (groups[from].ops.size() + groups[to].ops.size() > kMostOps)
    return false;
  KernelGroup merged;
  if (!edgesFit(from, to) || !edgesFit(to, from) ||
      !findSpace(from, to, merged) || createsCycle(from, to))
    return false;
  groups[to].elements = merged.elements;
  groups[to].columns = std::move(merged.columns);
  groups[to].take(groups[from]);
  mergedInto[from] = to;
  spans.add(groups[to].first, groups[to].last);
  return true;
}

SmallVector<KernelGroup> Grouping::run() {
  for (Operation &op : block)
    positions[&op] = static_cast<int64_t>(positions.size());
  for (Operation &op : block) {
    if (!isa<KernelOpInterface>(op) || isLeaf(&op))
      continue;
    auto number = static_cast<unsigned>(groups.size());
    groups.emplace_back(&op, positions.lookup(&op));
    begunAs[&op] = number;
    mergedInto.push_back(number);
    for (Value operand : op.getOperands()) {
      Operation *producer = stripReshapes(operand).getDefiningOp();
      unsigned group = producer ? groupOf(producer) : none;
      if (group != none && group != number)
        tryMerge(group, number);
    }
  }
  SmallVector<KernelGroup> all;
  for (Draft &group : groups) {
    if (group.ops.empty())
      continue;
    llvm::sort(group.ops, [&](Operation *a, Operation *b) {
      return positions.lookup(a) < positions.lookup(b);
    });
    all.push_back(std::move(static_cast<KernelGroup &>(group)));
  }
  return all;
}

SmallVector<KernelGroup> groupOps(Block &block) {
  return Grouping(block).run();
}

} // namespace pipewright::nn
