//===- BodyPlan.cpp - Buffers of the ops of a stage body ------------------===//
//
// A value and its views form one buffer, named by its root. A root that an op
// of the body makes may leave the body once; whatever leaves otherwise
// (arguments, weights, a part of a value, a value that is both returned and
// stashed) is copied at the end.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/allocated/BodyPlan.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// Whether `op` writes the weight named `symbol`, a running statistic.
static bool writesState(Operation &op, StringAttr symbol) {
  if (isa<nn::ParameterOp, nn::AccumulateGradientOp>(op) ||
      isMemoryEffectFree(&op))
    return false;
  bool names = false;
  op.getAttrDictionary().walk([&](FlatSymbolRefAttr reference) {
    names |= reference.getAttr() == symbol;
  });
  return names;
}

/// Whether an op at or behind `write` uses the value or a view of it.
static bool isUsedFrom(Operation &write, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (seesBytes(user))
      return llvm::any_of(user->getResults(),
                          [&](Value view) { return isUsedFrom(write, view); });
    Operation *inBlock = write.getBlock()->findAncestorOpInBlock(*user);
    return !inBlock || !inBlock->isBeforeInBlock(&write);
  });
}

/// A read of a state is its value at the start of the task, but its bytes are
/// those that the task writes: what is used from there on gets a copy.
static void copyOverwrittenStates(Block &block) {
  for (auto read :
       llvm::make_early_inc_range(block.getOps<nn::ParameterOp>())) {
    auto write = llvm::find_if(block, [&](Operation &op) {
      return writesState(op, read.getWeightAttr().getAttr());
    });
    if (write == block.end() || !isUsedFrom(*write, read.getResult()) ||
        (read.getResult().hasOneUse() &&
         isa<CopyOp>(*read.getResult().user_begin())))
      continue;
    OpBuilder builder(read.getContext());
    // At the very start: the write may come before the read.
    read->moveBefore(&block, block.begin());
    builder.setInsertionPointAfter(read);
    auto copy = CopyOp::create(builder, read.getLoc(), read.getType(),
                               read.getResult());
    read.getResult().replaceAllUsesExcept(copy.getResult(), copy);
  }
}

/// Makes what leaves the body leave it once, from an op of the body.
static void separateLeavingValues(Operation *body) {
  ReturnOp results = returnOf(body);
  OpBuilder builder(results);
  llvm::DenseSet<Value> leaving;
  for (OpOperand &operand : results->getOpOperands()) {
    Value root = rootOf(operand.get());
    bool isMadeHere = !isa<BlockArgument>(root) &&
                      !isa<nn::ParameterOp>(root.getDefiningOp());
    bool isWhole = bytesOf(root) == bytesOf(operand.get());
    if (isMadeHere && isWhole && leaving.insert(root).second)
      continue;
    auto copy = CopyOp::create(builder, results.getLoc(),
                               operand.get().getType(), operand.get());
    operand.set(copy.getResult());
    leaving.insert(copy.getResult());
  }
}

BodyPlan::BodyPlan(Operation *body) : body(body) {
  copyOverwrittenStates(blockOf(body));
  separateLeavingValues(body);
  assignResults();
  planTemporaries();
}

void BodyPlan::assignResults() {
  ReturnOp results = returnOf(body);
  MLIRContext *context = body->getContext();
  for (auto [number, value] : llvm::enumerate(results.getValues()))
    leaving[rootOf(value)] = BufferAttr::get(context, BufferSpace::output,
                                             number, 0, bytesOf(value));
  for (auto [value, buffer] :
       llvm::zip_equal(results.getStash(), stashBuffers(body)))
    leaving[rootOf(value)] = buffer;
}

void BodyPlan::planTemporaries() {
  std::vector<BufferLife> lives;
  for (auto [point, op] : llvm::enumerate(blockOf(body))) {
    for (Value operand : op.getOperands()) {
      auto found = temporaries.find(rootOf(operand));
      if (found != temporaries.end())
        lives[found->second].end = point;
    }
    if (seesBytes(&op) || isa<nn::ParameterOp>(op))
      continue;
    for (Value result : op.getResults()) {
      if (leaving.contains(result) || addedInPlace(result))
        continue;
      temporaries[result] = lives.size();
      auto at = static_cast<int64_t>(point);
      lives.push_back({at, at, bytesOf(result)});
    }
  }
  plan = planMemory(lives, kBufferAlignment);
}

BufferAttr BodyPlan::bufferOfRoot(Value root, const ArenaLayout &layout,
                                  int32_t stage, int64_t workspace) const {
  if (isa<BlockArgument>(root))
    return bufferOf(root);
  MLIRContext *context = body->getContext();
  if (auto read = root.getDefiningOp<nn::ParameterOp>()) {
    // Evaluation reads the newest version.
    return layout.bufferOf(read, stage, !isa<EvaluateOp>(body));
  }
  if (BufferAttr buffer = leaving.lookup(root))
    return buffer;
  if (nn::AccumulateGradientOp sum = addedInPlace(root)) {
    ArenaLayout::Range range = *layout.placeOf(stage, sum.getWeight()).gradient;
    return BufferAttr::get(context, BufferSpace::arena, range.offset,
                           range.bytes);
  }
  int64_t offset = workspace + plan.offsets[temporaries.at(root)];
  return BufferAttr::get(context, BufferSpace::arena, offset, bytesOf(root));
}

void BodyPlan::write(const ArenaLayout &layout, int32_t stage,
                     int64_t workspace) {
  for (Operation &op : blockOf(body)) {
    if (op.getNumResults() == 0)
      continue;
    SmallVector<Attribute> buffers;
    for (Value result : op.getResults())
      buffers.push_back(seesBytes(&op)
                            ? bufferOfView(&op, bufferOf(op.getOperand(0)))
                            : bufferOfRoot(result, layout, stage, workspace));
    op.setDiscardableAttr(PipeDialect::kBuffers,
                          ArrayAttr::get(body->getContext(), buffers));
  }
}
