//===- ModelLayers.cpp - A model's modules, and what ops keep -------------===//
//
// See ModelLayers.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/ModelLayers.h"

#include "dialects/nn/NNLocation.h"
#include "dialects/pipe/PipeDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

SmallVector<ModelLayer> pipewright::pipe::layersOf(ArrayRef<Operation *> ops) {
  SmallVector<ModelLayer> layers;
  for (auto [number, op] : llvm::enumerate(ops)) {
    std::string name = nn::layerOfLocation(op->getLoc());
    const bool isNew =
        layers.empty() || (!name.empty() && name != layers.back().name &&
                           !layers.back().name.empty());
    if (isNew)
      layers.push_back({name, static_cast<int32_t>(number), 0});
    if (layers.back().name.empty())
      layers.back().name = std::move(name);
    layers.back().end = static_cast<int32_t>(number) + 1;
  }
  return layers;
}

std::string pipewright::pipe::blockOf(Operation *op) {
  std::string layer = nn::layerOfLocation(op->getLoc());
  SmallVector<StringRef> parts = nn::partsOfName(layer);
  const auto *number = llvm::find_if(
      parts, [](StringRef part) { return llvm::all_of(part, llvm::isDigit); });
  if (number != parts.end())
    parts.truncate(number - parts.begin() + 1);
  return llvm::join(parts, ".");
}

bool pipewright::pipe::isLayer(Operation *op) {
  return isa<nn::LibraryOpInterface>(op) && op->getNumOperands() >= 2;
}

SmallVector<int64_t> pipewright::pipe::layerNumbers(ArrayRef<Operation *> ops) {
  auto blocks = llvm::map_to_vector(ops, blockOf);
  auto isNumbered = [](StringRef name) {
    StringRef last = name.substr(name.rfind('.') + 1);
    return !last.empty() && llvm::all_of(last, llvm::isDigit);
  };
  const bool areNumbered = llvm::any_of(blocks, isNumbered);
  SmallVector<int64_t> numbers;
  std::string current;
  bool hasBegun = false;
  for (auto [op, block] : llvm::zip_equal(ops, blocks)) {
    const bool begins =
        areNumbered ? isNumbered(block) && block != current : isLayer(op);
    const int64_t last = numbers.empty() ? 0 : numbers.back();
    numbers.push_back(last + (begins && hasBegun ? 1 : 0));
    hasBegun |= begins;
    if (begins)
      current = block;
  }
  return numbers;
}

void pipewright::pipe::forEachTrained(
    const ModelOps &model, Operation *op,
    llvm::function_ref<void(nn::WeightOp, RankedTensorType)> visit) {
  for (Value operand : op->getOperands())
    for (nn::ParameterOp read : model.originOf(operand).learned)
      if (nn::WeightOp weight = model.weightOf(read);
          weight && weight.getRole() == nn::WeightRole::Parameter)
        visit(weight, read.getResult().getType());
}

int64_t pipewright::pipe::trainedBytes(const ModelOps &model, Operation *op,
                                       llvm::DenseSet<Attribute> &seen) {
  int64_t bytes = 0;
  forEachTrained(model, op, [&](nn::WeightOp weight, RankedTensorType read) {
    if (seen.insert(weight.getSymNameAttr()).second)
      bytes += byteSize(read);
  });
  return bytes;
}

/// What a gradient uses of its op: its operands and results.
static LogicalResult visitUsed(nn::DifferentiableOpInterface op,
                               llvm::function_ref<void(Value)> visit) {
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfter(op);
  // Stands for the gradient of the result.
  auto dy = UnrealizedConversionCastOp::create(
      builder, op.getLoc(), op->getResult(0).getType(), ValueRange());
  Operation *end = dy->getNextNode();
  SmallVector<Value> given(op->getNumResults());
  given.front() = dy.getResult(0);
  SmallVector<Value> gradients;
  const LogicalResult built = op.buildVjp(builder, given, gradients);
  SmallVector<Operation *> made;
  for (Operation *next = dy; next != end; next = next->getNextNode())
    made.push_back(next);
  for (Operation *part : made)
    for (Value operand : part->getOperands())
      if (!llvm::is_contained(made, operand.getDefiningOp()))
        visit(operand);
  for (Operation *part : llvm::reverse(made))
    part->erase();
  return built;
}

LogicalResult pipewright::pipe::findKept(const ModelOps &model,
                                         ArrayRef<Operation *> ops,
                                         StageGraph &graph) {
  DenseMap<Value, int32_t> numbers;
  for (auto [node, op] : llvm::zip_equal(graph.nodes, ops)) {
    auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(op);
    auto type = op->getNumResults() == 0
                    ? RankedTensorType()
                    : dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!differentiable || !type || !isa<FloatType>(type.getElementType()))
      continue;
    auto keep = [&](Value value) {
      auto [known, isNew] =
          numbers.try_emplace(value, static_cast<int32_t>(numbers.size()));
      if (isNew)
        graph.keptBytes.push_back(static_cast<double>(
            byteSize(cast<RankedTensorType>(value.getType()))));
      node.kept.push_back(known->second);
    };
    auto visit = [&](Value used) {
      for (Value value : model.originOf(used).placed)
        keep(value);
    };
    if (failed(visitUsed(differentiable, visit)))
      return failure();
  }
  return success();
}
