//===- BufferTables.cpp - Buffers that do not train -----------------------===//
//
// Name, use and values must all speak for a buffer.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/BufferTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool isGeneratedName(StringRef name) {
  return name.starts_with("onnx::") || name.starts_with("val_") ||
         name.starts_with("scalar_tensor") || name.starts_with("_") ||
         name.contains("Constant") ||
         name.find_first_not_of("0123456789") == StringRef::npos;
}

/// The part of a name that says what a tensor is in its module.
static std::string lastPart(StringRef name) {
  size_t end = name.find_last_of("./:");
  return name.substr(end == StringRef::npos ? 0 : end + 1).lower();
}

static bool isNamedAsWeight(StringRef part) {
  return part.ends_with("weight") || part.ends_with("bias") ||
         part.ends_with("kernel") || part.ends_with("gamma") ||
         part.ends_with("beta") || part.contains("token") ||
         part.contains("embed");
}

static bool isNamedAsTable(StringRef part) {
  static constexpr StringRef words[] = {"cos",  "sin",   "cosine",
                                        "sine", "alibi", "slopes"};
  return llvm::any_of(llvm::split(part, '_'), [](StringRef word) {
    return llvm::is_contained(words, word);
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {
/// A part of a table: `count` elements, `stride` apart.
struct Column {
  const float *data;
  int64_t count, stride;

  double at(int64_t i) const { return data[i * stride]; }
};
} // namespace

/// Tables are computed in float32, where a long one is wrong by some 1e-3.
static constexpr double kTolerance = 5e-3;

static double largest(const Column &column) {
  double most = 0;
  for (int64_t i = 0; i < column.count; ++i)
    most = std::max(most, std::abs(column.at(i)));
  return most;
}

static bool isConstant(const Column &column) {
  const double most = largest(column);
  for (int64_t i = 1; i < column.count; ++i)
    if (!(std::abs(column.at(i) - column.at(0)) <= 1e-6 * most))
      return false;
  return true;
}

/// x[i + 1] + x[i - 1] = c x[i] with one c: sin, cos, and straight lines.
static bool isWave(const Column &column) {
  double products = 0, squares = 0;
  for (int64_t i = 1; i + 1 < column.count; ++i) {
    products += column.at(i) * (column.at(i + 1) + column.at(i - 1));
    squares += column.at(i) * column.at(i);
  }
  const double factor = squares > 0 ? products / squares : 0;
  const double allowed = kTolerance * largest(column);
  for (int64_t i = 1; i + 1 < column.count; ++i)
    if (!(std::abs(column.at(i + 1) + column.at(i - 1) -
                   factor * column.at(i)) <= allowed))
      return false;
  return std::abs(factor) <= 2 + kTolerance;
}

bool isWaveTable(ArrayRef<float> values, ArrayRef<int64_t> shape) {
  // Each column has one free number; so many others must agree with it.
  constexpr int64_t leastEvidence = 16;
  const auto size = static_cast<int64_t>(values.size());
  int64_t inner = size;
  for (int64_t count : shape) {
    if (count == 0)
      return false;
    inner /= count;
    if (count < 4)
      continue;
    int64_t waves = 0, columns = size / count;
    bool all = true;
    for (int64_t begin = 0; all && begin < size; begin += count * inner)
      for (int64_t k = 0; all && k < inner; ++k) {
        Column column{values.data() + begin + k, count, inner};
        if (isConstant(column))
          continue;
        all = isWave(column);
        ++waves;
      }
    // The slowest cosines do not leave 1 in a short table.
    if (all && 4 * waves >= columns && waves * (count - 3) >= leastEvidence)
      return true;
  }
  return false;
}

bool areAlibiSlopes(ArrayRef<float> values) {
  const auto heads = static_cast<int64_t>(values.size());
  if (heads < 2)
    return false;
  int64_t power = 1;
  while (2 * power <= heads)
    power *= 2;
  for (int64_t i = 0; i < heads; ++i) {
    const double exponent = i < power ? -8.0 * (i + 1) / power
                                      : -4.0 * (2 * (i - power) + 1) / power;
    if (!(std::abs(values[i] / std::exp2(exponent) - 1) <= 1e-4))
      return false;
  }
  return true;
}

static bool areAll(ArrayRef<float> values, float value) {
  return llvm::all_of(values, [&](float v) { return v == value; });
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

BufferTables::BufferTables(func::FuncOp model, const nn::WeightStore &weights)
    : weights(weights) {
  Block &body = model.getBody().front();
  activations.insert_range(body.getArguments());
  for (Operation &op : body) {
    if (auto read = dyn_cast<nn::ParameterOp>(op))
      reads[read.getWeightAttr().getAttr()].push_back(read);
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return isActivation(operand); }))
      activations.insert_range(op.getResults());
  }
}

/// Ops that move elements of one tensor, or look rows of it up.
static bool isMove(Operation *op) {
  return isa<nn::ViewOpInterface, nn::TransposeOp, nn::SliceOp, nn::CastOp,
             nn::BroadcastToOp, nn::EmbeddingOp>(op);
}

static bool isPointwise(Operation *op) {
  return isa<nn::NegOp, nn::AddOp, nn::SubOp, nn::MulOp, nn::DivOp, nn::WhereOp,
             nn::ConcatOp>(op);
}

/// Whether all that the value goes into, through moves and other constants, is
/// pointwise arithmetic with activations of three dimensions or more.
bool BufferTables::meetsOnlyPointwise(Value value) const {
  llvm::SmallSetVector<Value, 8> open;
  open.insert(value);
  for (size_t i = 0; i < open.size(); ++i)
    for (OpOperand &use : open[i].getUses()) {
      Operation *op = use.getOwner();
      if (op->getNumResults() != 1)
        return false;
      Value result = op->getResult(0);
      const bool isTable = isMove(op) && use.getOperandNumber() == 0;
      if (isTable || (isPointwise(op) && !isActivation(result)))
        open.insert(result);
      else if (!isPointwise(op) || isa<nn::ConcatOp>(op) ||
               cast<RankedTensorType>(result.getType()).getRank() < 3)
        return false;
    }
  return true;
}

/// What reads a value, seen through ops that keep its elements as they are.
static SmallVector<OpOperand *> usesBehindViews(Value value) {
  SmallVector<OpOperand *> uses;
  SmallVector<Value> open{value};
  while (!open.empty())
    for (OpOperand &use : open.pop_back_val().getUses()) {
      if (isa<nn::ViewOpInterface>(use.getOwner()))
        open.push_back(use.getOwner()->getResult(0));
      else
        uses.push_back(&use);
    }
  return uses;
}

/// Whether the value only scales or shifts norms that are scaled and shifted
/// again: exporters write group normalization so.
bool BufferTables::precedesAnotherScale(Value value) const {
  auto scalesAgain = [&](OpOperand *use) {
    Operation *op = use->getOwner();
    return isa<nn::MulOp, nn::AddOp>(op) &&
           !llvm::all_of(op->getOperands(),
                         [&](Value operand) { return isActivation(operand); });
  };
  return llvm::all_of(usesBehindViews(value), [&](OpOperand *use) {
    return isa<nn::LayerNormOp>(use->getOwner()) &&
           use->getOperandNumber() > 0 &&
           llvm::all_of(usesBehindViews(use->getOwner()->getResult(0)),
                        scalesAgain);
  });
}

StringRef BufferTables::describe(nn::WeightOp weight, StringRef name) const {
  auto read = reads.find(weight.getSymNameAttr());
  const std::string part = lastPart(name);
  RankedTensorType type = weight.getTensorType();
  if (read == reads.end() || isNamedAsWeight(part) ||
      !type.getElementType().isF32())
    return "";
  auto values = [&] {
    ArrayRef<char> bytes = weights.lookup(weight.getSymName());
    return ArrayRef(reinterpret_cast<const float *>(bytes.data()),
                    bytes.size() / sizeof(float));
  };
  auto allReads = [&](bool (BufferTables::*test)(Value) const) {
    return llvm::all_of(read->second,
                        [&](Value v) { return (this->*test)(v); });
  };
  if (isGeneratedName(name) && allReads(&BufferTables::precedesAnotherScale) &&
      (areAll(values(), 1) || areAll(values(), 0)))
    return "ones or zeros of a norm that is scaled again";
  if (!allReads(&BufferTables::meetsOnlyPointwise))
    return "";
  if (isNamedAsTable(part))
    return "a table by its name";
  if (areAlibiSlopes(values()))
    return "slopes by their values";
  return isWaveTable(values(), type.getShape()) ? "a table by its values" : "";
}

} // namespace pipewright::frontend
