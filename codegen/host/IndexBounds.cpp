//===- IndexBounds.cpp - Which indices data may have ----------------------===//
//
// Ops say themselves what they do with integers (IntegerOpInterface); calls of
// kernels and borders of stages are walked through here. Each value is visited
// once, so that copies of copies cost no more than they are.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/IndexBounds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace pipewright::codegen {

/// The function behind a launch; null where only its name is known.
static func::FuncOp kernelOf(nn::LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getKernel());
  return kernel && !kernel.isExternal() ? kernel : func::FuncOp();
}

/// The sources of a body that has some.
static ArrayAttr sourcesOf(Operation *body) {
  if (auto forward = dyn_cast<pipe::ForwardOp>(body))
    return forward.getSources();
  if (auto evaluate = dyn_cast<pipe::EvaluateOp>(body))
    return evaluate.getSources();
  return {};
}

//===----------------------------------------------------------------------===//
// From an input to tables
//===----------------------------------------------------------------------===//

/// Follows values of one function: of a stage's body, or of a kernel.
class IndexWalk {
public:
  IndexWalk(const ProgramLayout &layout, IndexBounds &bounds)
      : layout(layout), bounds(bounds) {}

  LogicalResult run(Value value, bool whole);
  /// What a kernel returns of it: results, and whether each has all of it.
  SmallVector<std::pair<unsigned, bool>> returned;

private:
  void push(Value value, bool whole) {
    // A way of the whole says all that a way of a part says.
    bool isKnown =
        seen[true].contains(value) || !seen[whole].insert(value).second;
    if (!isKnown)
      pending.push_back({value, whole});
  }
  LogicalResult visit(OpOperand &use, bool whole);
  LogicalResult enter(nn::LaunchOp launch, OpOperand &use, bool whole);
  void leave(pipe::ReturnOp end, OpOperand &use, bool whole);

  const ProgramLayout &layout;
  IndexBounds &bounds;
  /// Of which a part comes, and of which all.
  DenseSet<Value> seen[2];
  SmallVector<std::pair<Value, bool>> pending;
};

LogicalResult IndexWalk::run(Value first, bool isWhole) {
  push(first, isWhole);
  while (!pending.empty()) {
    auto [value, whole] = pending.pop_back_val();
    for (OpOperand &use : value.getUses())
      if (failed(visit(use, whole)))
        return failure();
  }
  return success();
}

LogicalResult IndexWalk::visit(OpOperand &use, bool whole) {
  Operation *user = use.getOwner();
  if (auto launch = dyn_cast<nn::LaunchOp>(user))
    return enter(launch, use, whole);
  if (auto end = dyn_cast<pipe::ReturnOp>(user)) {
    leave(end, use, whole);
    return success();
  }
  if (isa<func::ReturnOp>(user)) {
    returned.push_back({use.getOperandNumber(), whole});
    return success();
  }
  if (isa<pipe::ReportOp>(user))
    return success();
  if (auto copy = dyn_cast<pipe::CopyOp>(user)) {
    push(copy.getResult(), whole);
    return success();
  }
  auto op = dyn_cast<nn::IntegerOpInterface>(user);
  if (!op)
    return user->emitOpError("does not say what it does with integers, so "
                             "that nobody knows which of them are indices");
  switch (op.getIntegerUse(use)) {
  case nn::IntegerUse::Moved:
    push(user->getResult(0), whole);
    return success();
  case nn::IntegerUse::Picked:
    push(user->getResult(0), /*whole=*/false);
    return success();
  case nn::IntegerUse::Computed:
    return success();
  case nn::IntegerUse::Index:
    bounds.tables.push_back({op.getIndexRange(), whole});
    return success();
  }
  llvm_unreachable("all uses are listed");
}

LogicalResult IndexWalk::enter(nn::LaunchOp launch, OpOperand &use,
                               bool whole) {
  func::FuncOp kernel = kernelOf(launch);
  if (!kernel || use.getOperandNumber() >= kernel.getNumArguments())
    return success();
  IndexWalk inside(layout, bounds);
  if (failed(inside.run(kernel.getArgument(use.getOperandNumber()), whole)))
    return failure();
  for (auto [result, isWhole] : inside.returned)
    if (result < launch.getNumResults())
      push(launch.getResult(result), isWhole);
  return success();
}

/// To the stages whose forward, or evaluation, takes what this one gives.
void IndexWalk::leave(pipe::ReturnOp end, OpOperand &use, bool whole) {
  Operation *body = end->getParentOp();
  int64_t index = use.getOperandNumber();
  if (!sourcesOf(body) || index >= static_cast<int64_t>(end.getValues().size()))
    return;
  StringRef name = cast<pipe::StageOp>(body->getParentOp()).getSymName();
  for (const StageLayout &stage : layout.stages) {
    auto op = const_cast<pipe::StageOp &>(stage.op);
    Operation *other = isa<pipe::ForwardOp>(body)
                           ? op.getForward().getOperation()
                           : op.getEvaluate().getOperation();
    if (!other)
      continue;
    for (auto [argument, source] :
         llvm::zip_equal(other->getRegion(0).getArguments(), sourcesOf(other)))
      if (auto output = dyn_cast<pipe::OutputAttr>(source))
        if (output.getStage().getValue() == name && output.getIndex() == index)
          push(argument, whole);
  }
}

LogicalResult IndexBounds::follow(const ProgramLayout &layout,
                                  BlockArgument argument) {
  return IndexWalk(layout, *this).run(argument, /*whole=*/true);
}

void IndexBounds::apply(Port &port) const {
  int64_t least = 0, most = 0;
  for (const Table &table : tables) {
    most = std::max(most, table.range.limit);
    if (table.whole)
      least = least ? std::min(least, table.range.limit) : table.range.limit;
  }
  port.limit = least ? least : most;
  for (const Table &table : tables) {
    auto takes = [&](const Table &other) {
      return !other.whole || other.range.contains(*table.range.ignored);
    };
    if (!port.ignored && table.range.ignored && llvm::all_of(tables, takes))
      port.ignored = table.range.ignored;
  }
}

//===----------------------------------------------------------------------===//
// From a table to inputs
//===----------------------------------------------------------------------===//

/// Whether all data that the input may have is in the range.
static bool isInside(const Port &port, const nn::IndexRange &range) {
  return port.limit > 0 && port.limit <= range.limit &&
         (!port.ignored || range.contains(*port.ignored));
}

static bool isInside(DenseElementsAttr elements, const nn::IndexRange &range) {
  if (!elements.getElementType().isInteger(64))
    return false;
  return llvm::all_of(elements.getValues<int64_t>(),
                      [&](int64_t index) { return range.contains(index); });
}

namespace {

/// Follows values of one function back to what they are made of.
class OriginWalk {
public:
  OriginWalk(const ProgramLayout &layout, const nn::IndexRange &range)
      : layout(layout), range(range) {}

  /// Whether all that `value` is made of is in range, but for what the
  /// arguments of a kernel hold: these are noted.
  bool run(Value value);
  llvm::SmallDenseSet<unsigned> arguments;

private:
  void push(Value value) {
    if (seen.insert(value).second)
      pending.push_back(value);
  }
  bool visit(BlockArgument argument);
  bool visit(OpResult result);
  bool enter(nn::LaunchOp launch, unsigned result);

  const ProgramLayout &layout;
  const nn::IndexRange &range;
  DenseSet<Value> seen;
  SmallVector<Value> pending;
};

} // namespace

bool OriginWalk::run(Value first) {
  push(first);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto argument = dyn_cast<BlockArgument>(value);
    if (!(argument ? visit(argument) : visit(cast<OpResult>(value))))
      return false;
  }
  return true;
}

bool OriginWalk::visit(BlockArgument argument) {
  Operation *body = argument.getOwner()->getParentOp();
  if (isa<func::FuncOp>(body)) {
    arguments.insert(argument.getArgNumber());
    return true;
  }
  ArrayAttr sources = sourcesOf(body);
  if (!sources || argument.getArgNumber() >= sources.size())
    return false;
  auto input = dyn_cast<pipe::InputAttr>(sources[argument.getArgNumber()]);
  int64_t number =
      input ? layout.inputNumber(input.getName().getValue()) : int64_t{-1};
  return number >= 0 && isInside(layout.inputs[number], range);
}

bool OriginWalk::visit(OpResult result) {
  Operation *op = result.getOwner();
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return isInside(constant.getValue(), range);
  if (auto launch = dyn_cast<nn::LaunchOp>(op))
    return enter(launch, result.getResultNumber());
  auto integers = dyn_cast<nn::IntegerOpInterface>(op);
  if (!integers)
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    nn::IntegerUse use = integers.getIntegerUse(operand);
    if (use != nn::IntegerUse::Moved && use != nn::IntegerUse::Picked)
      return false;
    push(operand.get());
  }
  // Zeros, which may be there too, are in every range.
  return true;
}

bool OriginWalk::enter(nn::LaunchOp launch, unsigned result) {
  func::FuncOp kernel = kernelOf(launch);
  if (!kernel)
    return false;
  Operation *end = kernel.front().getTerminator();
  OriginWalk inside(layout, range);
  if (result >= end->getNumOperands() || !inside.run(end->getOperand(result)))
    return false;
  for (unsigned argument : inside.arguments)
    push(launch.getInputs()[argument]);
  return true;
}

bool isBounded(const ProgramLayout &layout, Value value,
               const nn::IndexRange &range) {
  return OriginWalk(layout, range).run(value);
}

} // namespace pipewright::codegen
