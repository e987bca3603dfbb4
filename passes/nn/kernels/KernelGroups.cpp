//===- KernelGroups.cpp - which ops become one kernel ---------------------===//

#include "passes/nn/kernels/KernelGroups.h"

#include "dialects/nn/NNOps.h"

#include "llvm/ADT/SetVector.h"

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

/// True if all ops can be computed again wherever their results are used.
static bool isInlinable(const KernelGroup &group) {
  return llvm::all_of(group.ops, [](Operation *op) {
    RowSpace space = spaceOf(op);
    return space.walk == RowWalk::Cheap || space.moves();
  });
}

static bool arePointwise(const KernelGroup &group) {
  return llvm::all_of(group.ops,
                      [](Operation *op) { return spaceOf(op).isPointwise(); });
}

namespace {

class Grouping {
public:
  explicit Grouping(Block &block) : block(block) {}

  SmallVector<KernelGroup> run();

private:
  /// May `consumer` use `value`, a result of another op of its kernel?
  bool canFeed(OpResult value, Operation *consumer) const;
  bool edgesFit(const KernelGroup &from, const KernelGroup &to) const;
  bool staysInside(const KernelGroup &group, const KernelGroup &other) const;
  bool findSpace(const KernelGroup &producer, const KernelGroup &consumer,
                 KernelGroup &merged) const;
  bool createsCycle(const KernelGroup &merged) const;
  bool contains(const KernelGroup &group, Operation *op) const {
    return llvm::is_contained(group.ops, op);
  }
  bool tryMerge(unsigned producer, unsigned consumer);

  Block &block;
  SmallVector<KernelGroup> groups;
  DenseMap<Operation *, unsigned> groupOf;
};

} // namespace

/// A loss and its gradient read the same logits: one pass serves both.
static bool isLossOfGradient(OpResult value, Operation *consumer) {
  auto loss = dyn_cast<SoftmaxCrossEntropyOp>(value.getOwner());
  auto gradient = dyn_cast<SoftmaxCrossEntropyBackwardOp>(consumer);
  return loss && gradient &&
         (value == loss.getLargest() || value == loss.getSum()) &&
         gradient.getLogits() == loss.getLogits() &&
         gradient.getLabels() == loss.getLabels();
}

bool Grouping::canFeed(OpResult value, Operation *consumer) const {
  if (isLossOfGradient(value, consumer))
    return true;
  RowSpace from = spaceOf(value.getOwner()), to = spaceOf(consumer);
  ResultForm form = from.results[value.getResultNumber()];
  if (form != ResultForm::Element && form != ResultForm::Row)
    return false;
  // Several nests would compute the producer several times.
  if (to.walk == RowWalk::Several || to.walk == RowWalk::Transposition)
    return false;
  // Moving what was just moved is only another address; what is cheap can be
  // computed where its result goes.
  if (to.walk == RowWalk::Move)
    return value.hasOneUse() && (from.moves() || from.walk == RowWalk::Cheap);
  // A pass over strided rows costs too much to be repeated.
  return from.walk != RowWalk::Transposition || to.isPointwise();
}

/// Checks all direct uses of results of `from` in `to`.
bool Grouping::edgesFit(const KernelGroup &from, const KernelGroup &to) const {
  for (Operation *op : to.ops)
    for (Value operand : op->getOperands()) {
      Value source = stripReshapes(operand);
      Operation *producer = source.getDefiningOp();
      if (producer && contains(from, producer) &&
          !canFeed(cast<OpResult>(source), op))
        return false;
    }
  return true;
}

/// True if no op outside of the two groups uses a result of `group`.
bool Grouping::staysInside(const KernelGroup &group,
                           const KernelGroup &other) const {
  SmallVector<Operation *> users;
  for (Operation *op : group.ops)
    llvm::append_range(users, op->getUsers());
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (isa<ViewOpInterface>(user))
      llvm::append_range(users, user->getUsers());
    else if (!contains(group, user) && !contains(other, user))
      return false;
  }
  return true;
}

bool Grouping::findSpace(const KernelGroup &producer,
                         const KernelGroup &consumer,
                         KernelGroup &merged) const {
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
    bool reduces = llvm::any_of(producer.ops, [](Operation *op) {
      return spaceOf(op).walk == RowWalk::Rows;
    });
    merged.elements = producer.elements;
    if (reduces && arePointwise(consumer))
      for (int64_t columns : producer.columns)
        if (consumer.elements * columns == producer.elements)
          merged.columns.push_back(columns);
    if (!merged.columns.empty())
      return true;
  }
  // What is cheap, or only one number, is computed where it is used.
  merged.elements = consumer.elements;
  merged.columns = consumer.columns;
  bool single = producer.elements == 1 && arePointwise(producer);
  return !merged.columns.empty() && (single || isInlinable(producer)) &&
         staysInside(producer, consumer);
}

/// True if a path leaves the merged group and comes back to it.
bool Grouping::createsCycle(const KernelGroup &merged) const {
  llvm::SmallSetVector<Operation *, 32> reached;
  Operation *first = merged.ops.front();
  auto push = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (producer && producer->getBlock() == &block &&
            !producer->isBeforeInBlock(first))
          reached.insert(producer);
      }
    });
  };
  for (Operation *op : merged.ops)
    for (Value operand : op->getOperands()) {
      Value source = stripReshapes(operand);
      Operation *producer = source.getDefiningOp();
      if (producer && producer->getBlock() == &block &&
          !contains(merged, producer) && !producer->isBeforeInBlock(first))
        reached.insert(producer);
    }
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i];
    if (contains(merged, op))
      return true;
    push(op);
    // Groups are executed as one op.
    auto group = groupOf.find(op);
    if (group != groupOf.end())
      for (Operation *member : groups[group->second].ops)
        push(member);
  }
  return false;
}

bool Grouping::tryMerge(unsigned producer, unsigned consumer) {
  KernelGroup &from = groups[producer], &to = groups[consumer];
  KernelGroup merged;
  if (!edgesFit(from, to) || !edgesFit(to, from) ||
      !findSpace(from, to, merged))
    return false;
  merged.ops = from.ops;
  llvm::append_range(merged.ops, to.ops);
  llvm::sort(merged.ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  if (createsCycle(merged))
    return false;
  for (Operation *op : from.ops)
    groupOf[op] = consumer;
  from.ops.clear();
  to = std::move(merged);
  return true;
}

SmallVector<KernelGroup> Grouping::run() {
  for (Operation &op : block) {
    if (!isa<KernelOpInterface>(op) || isLeaf(&op))
      continue;
    RowSpace space = spaceOf(&op);
    unsigned number = groups.size();
    groups.push_back({{&op}, space.elements, space.columns});
    groupOf[&op] = number;
    for (Value operand : op.getOperands()) {
      Operation *producer = stripReshapes(operand).getDefiningOp();
      auto group = producer ? groupOf.find(producer) : groupOf.end();
      if (group != groupOf.end() && group->second != number)
        tryMerge(group->second, number);
    }
  }
  llvm::erase_if(groups,
                 [](const KernelGroup &group) { return group.ops.empty(); });
  return std::move(groups);
}

/// Copies a cheap op for every slice of its result, if the slices do not
/// overlap much: each kernel then computes just what it needs, and the whole is
/// never stored.
static void copyForSlices(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || kernel.getRowSpace().walk != RowWalk::Cheap ||
        op.hasOneUse() || op.use_empty())
      continue;
    int64_t sliced = 0;
    bool onlySlices = llvm::all_of(op.getUsers(), [&](Operation *user) {
      auto slice = dyn_cast<SliceOp>(user);
      if (slice)
        sliced += elementsOf(slice.getResult());
      return slice != nullptr;
    });
    if (!onlySlices || sliced > elementsOf(op.getResult(0)))
      continue;
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op.getUses(), [](OpOperand &use) { return &use; });
    for (OpOperand *use : ArrayRef(uses).drop_front()) {
      OpBuilder builder(&op);
      use->set(builder.clone(op)->getResult(0));
    }
  }
}

SmallVector<KernelGroup> groupOps(Block &block) {
  copyForSlices(block);
  return Grouping(block).run();
}

} // namespace pipewright::nn
