//===- ArenaAccesses.cpp - What an op does to the arena -------------------===//
//
// See ArenaAccesses.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/ArenaAccesses.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// Joins ranges of the same space that touch or overlap.
static void joinRanges(std::vector<BufferAttr> &ranges) {
  auto key = [](BufferAttr of) {
    return std::make_tuple(of.getSpace(), of.getIndex(), of.getOffset());
  };
  llvm::sort(ranges,
             [&](BufferAttr a, BufferAttr b) { return key(a) < key(b); });
  std::vector<BufferAttr> joined;
  for (BufferAttr next : ranges) {
    if (!joined.empty()) {
      BufferAttr last = joined.back();
      int64_t lastEnd = last.getOffset() + last.getBytes();
      if (last.getSpace() == next.getSpace() &&
          last.getIndex() == next.getIndex() && next.getOffset() <= lastEnd) {
        int64_t end = std::max(lastEnd, next.getOffset() + next.getBytes());
        joined.back() =
            BufferAttr::get(next.getContext(), next.getSpace(), next.getIndex(),
                            last.getOffset(), end - last.getOffset());
        continue;
      }
    }
    joined.push_back(next);
  }
  ranges = std::move(joined);
}

/// Every buffer that an attribute names.
static void addBuffersOf(Attribute attribute,
                         std::vector<BufferAttr> &buffers) {
  attribute.walk([&](BufferAttr buffer) { buffers.push_back(buffer); });
}

PlaceOp ArenaAccesses::placeOf(FlatSymbolRefAttr weight, StringRef stage) {
  for (auto place : arena.getBody()->getOps<PlaceOp>())
    if (place.getWeightAttr() == weight && place.getStage() == stage)
      return place;
  return PlaceOp();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

LogicalResult ArenaAccesses::addBodyOp(StageOp stage, Operation &op,
                                       Accesses &accesses) {
  // Reads of weights and views touch nothing; whoever uses them does.
  if (seesBytes(&op) || isa<nn::ParameterOp, ReturnOp>(op))
    return success();
  for (Value operand : op.getOperands()) {
    // What was added in place is part of the gradient already.
    if (addedInPlace(rootOf(operand)))
      continue;
    BufferAttr buffer = bufferOf(operand);
    if (!buffer)
      return op.emitOpError("reads a value without '")
             << PipeDialect::kBuffers << "'; run pipe-plan-memory";
    accesses.reads.push_back(buffer);
  }
  for (Value result : op.getResults()) {
    BufferAttr buffer = bufferOf(result);
    if (!buffer)
      return op.emitOpError("has no '")
             << PipeDialect::kBuffers << "'; run pipe-plan-memory";
    accesses.writes.push_back(buffer);
  }
  // Ops that name weights change them: gradients are added, states assigned.
  op.getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) {
    PlaceOp place = placeOf(symbol, stage.getSymName());
    if (!place)
      return;
    bool isGradient = isa<nn::AccumulateGradientOp>(op);
    for (NamedAttribute attribute : place->getAttrs())
      if ((attribute.getName() == place.getGradientAttrName()) == isGradient)
        addBuffersOf(attribute.getValue(), accesses.writes);
  });
  return success();
}

FailureOr<const Accesses *> ArenaAccesses::bodyAccesses(StageOp stage,
                                                        BodyOps ops) {
  auto [known, isNew] = bodies.try_emplace(&*ops.begin());
  Accesses &accesses = known->second;
  if (!isNew)
    return &accesses;
  for (Operation &op : ops)
    if (failed(addBodyOp(stage, op, accesses)))
      return failure();
  joinRanges(accesses.reads);
  joinRanges(accesses.writes);
  return &accesses;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

/// The bytes of the arena that a range means when `task` runs its body; null
/// where they are not known.
BufferAttr ArenaAccesses::resolve(TaskOp task, BufferAttr buffer) const {
  auto within = [&](BufferAttr base) {
    if (!base)
      return base;
    return BufferAttr::get(task.getContext(), BufferSpace::arena,
                           base.getOffset() + buffer.getOffset(),
                           buffer.getBytes());
  };
  auto number = static_cast<size_t>(buffer.getIndex());
  auto isStash = [&](Value value) {
    return stashNumber(value.getType()) ==
           static_cast<int64_t>(buffer.getIndex());
  };
  switch (buffer.getSpace()) {
  case BufferSpace::arena:
  case BufferSpace::host:
    return buffer;
  case BufferSpace::input:
    return number < task->getNumOperands()
               ? within(places.lookup(task->getOperand(number)))
               : BufferAttr();
  case BufferSpace::output:
    return number < task->getNumResults()
               ? within(places.lookup(task->getResult(number)))
               : BufferAttr();
  case BufferSpace::stash:
    for (ValueRange values :
         {ValueRange(task->getOperands()), ValueRange(task->getResults())})
      for (Value value : values)
        if (isStash(value))
          return within(places.lookup(value));
    return BufferAttr();
  case BufferSpace::weights:
    return within(task.getWeightsAttr());
  }
  llvm_unreachable("all spaces are listed");
}

/// What its optimizer updates and works with, and the place where it keeps the
/// old version.
void ArenaAccesses::addOptimizer(TaskOp task, Accesses &accesses) {
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>()) {
    if (optimizer.getStage() != task.getStage())
      continue;
    for (NamedAttribute attribute : optimizer->getAttrs())
      if (attribute.getName() != optimizer.getVersionsAttrName() &&
          attribute.getName() != optimizer.getOtherRangesAttrName() &&
          !(optimizer.getHome() &&
            attribute.getName() == optimizer.getWeightsAttrName()) &&
          !(optimizer.getRoundedHome() &&
            attribute.getName() == optimizer.getRoundedAttrName()))
        addBuffersOf(attribute.getValue(), accesses.writes);
  }
  if (task.getWeightsAttr())
    accesses.writes.push_back(task.getWeightsAttr());
}

LogicalResult ArenaAccesses::addBody(Operation *op, Accesses &accesses) {
  auto resume = dyn_cast<ResumeOp>(op);
  TaskOp task = resume ? resume.getTask() : cast<TaskOp>(op);
  FailureOr<const Accesses *> body =
      bodyAccesses(stages.stageOf(task.getStageAttr()), opsRunBy(stages, op));
  if (failed(body))
    return failure();
  auto add = [&](const std::vector<BufferAttr> &from,
                 std::vector<BufferAttr> &to) {
    for (BufferAttr buffer : from) {
      BufferAttr resolved = resolve(task, buffer);
      if (!resolved)
        return failure();
      to.push_back(resolved);
    }
    return success();
  };
  if (failed(add((*body)->reads, accesses.reads)) ||
      failed(add((*body)->writes, accesses.writes)))
    return task.emitOpError("has no bytes for what its body uses; run "
                            "pipe-plan-memory");
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ArenaAccesses::place(StepOpInterface op) {
  SmallVector<Value> placed;
  for (OpResult result : op->getResults()) {
    ResultBytes bytes = op.getResultBytes(result);
    if (bytes.isPlanned())
      placed.push_back(result);
    else if (bytes.kind == ResultBytes::Kind::OfOperand)
      places[result] = places.lookup(op->getOperand(0));
  }
  ArrayAttr buffers = op.getPlannedBuffers();
  if (placed.size() != (buffers ? buffers.size() : 0))
    return op->emitOpError("expects ")
           << placed.size() << " buffers; run pipe-plan-memory";
  if (buffers)
    for (auto [value, buffer] :
         llvm::zip(placed, buffers.getAsRange<BufferAttr>()))
      places[value] = buffer;
  return success();
}

/// The copies of a weight, or its gradient; without a weight, all that the
/// optimizer of the stage updates.
LogicalResult ArenaAccesses::addPlace(StepOpInterface op, const ByteUse &use,
                                      Accesses &accesses) {
  bool isGradient = use.kind == ByteUse::Kind::Gradient;
  std::vector<BufferAttr> &to = use.writes ? accesses.writes : accesses.reads;
  size_t before = to.size();
  auto add = [&](std::initializer_list<std::optional<BufferAttr>> buffers) {
    for (std::optional<BufferAttr> buffer : buffers)
      if (buffer)
        to.push_back(*buffer);
  };
  StringRef stage = (use.stage ? use.stage : op.getStageName()).getValue();
  auto together = dyn_cast<CollectiveOp>(*op);
  auto load = use.kind == ByteUse::Kind::Home ? LoadWeightsOp()
                                              : dyn_cast<LoadWeightsOp>(*op);
  const bool isTold = load && load.getWeights();
  if (isTold)
    add({load.getWeights()});
  else if (together)
    add({together.getRange(arena)});
  else if (PlaceOp place =
               use.weight ? placeOf(use.weight, stage) : PlaceOp()) {
    if (isGradient)
      add({place.getGradient()});
    else
      add({place.getBuffer(), place.getRounded()});
  }
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>()) {
    if (together || isTold || use.weight || optimizer.getStage() != stage)
      continue;
    if (isGradient)
      add({optimizer.getGradients(), optimizer.getKept()});
    else if (use.kind == ByteUse::Kind::Weights)
      add({optimizer.getWeights()});
    else if (use.kind == ByteUse::Kind::Rounded)
      add({optimizer.getRounded()});
    else
      add({optimizer.getHome(), optimizer.getRoundedHome()});
  }
  if (to.size() == before)
    return op->emitOpError("uses ")
           << (isGradient ? "gradients" : "weights") << " that have no place";
  return success();
}

LogicalResult ArenaAccesses::add(StepOpInterface op, const ByteUse &use,
                                 Accesses &accesses) {
  switch (use.kind) {
  case ByteUse::Kind::Value: {
    BufferAttr buffer = places.lookup(use.value);
    if (!buffer)
      return op->emitOpError("uses ") << use.value << ", which has no buffer";
    (use.writes ? accesses.writes : accesses.reads).push_back(buffer);
    return success();
  }
  case ByteUse::Kind::Weight:
  case ByteUse::Kind::Gradient:
  case ByteUse::Kind::Weights:
  case ByteUse::Kind::Rounded:
  case ByteUse::Kind::Home:
    return addPlace(op, use, accesses);
  case ByteUse::Kind::Body:
    return addBody(op, accesses);
  case ByteUse::Kind::Optimizer:
    addOptimizer(cast<TaskOp>(*op), accesses);
    return success();
  }
  llvm_unreachable("all kinds of uses are covered");
}

FailureOr<Accesses> ArenaAccesses::of(StepOpInterface op) {
  if (failed(place(op)))
    return failure();
  Accesses accesses;
  for (const ByteUse &use : op.getByteUses())
    if (failed(add(op, use, accesses)))
      return failure();
  return accesses;
}
