//===- Bits.cpp - Operators on the bits of integers -----------------------===//
//
// Computed of constants alone: no kernel has them.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

#include <limits>

using namespace mlir;

namespace pipewright::frontend {

template <char op>
static LogicalResult foldBitwise(NodeContext &n) {
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands) || failed(checkSameKind(n, 0, 1)))
    return failure();
  const ConstantTensor &a = (*operands)[0], &b = (*operands)[1];
  if (a.kind() != ElementKind::Int)
    return n.error() << "expects integer operands";
  ConstantTensor result(a.kind(), a.shape(), a.isSplat() && b.isSplat());
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k) {
    int64_t x = a.intAt(k), y = b.intAt(k);
    result.setInt(k, op == '&' ? x & y : op == '|' ? x | y : x ^ y);
  }
  return n.setResult(0, std::move(result));
}

/// Of numbers without a sign the result depends on their width, which is not
/// known here.
static LogicalResult foldBitwiseNot(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  bool hasSign = false;
  if (result.kind() != ElementKind::Int)
    return n.error() << "expects an integer operand";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k) {
    hasSign |= result.intAt(k) < 0;
    result.setInt(k, ~result.intAt(k));
  }
  if (!hasSign)
    return n.error()
           << "is supported only of integers of which one is negative";
  return n.setResult(0, std::move(result));
}

/// The bits that a type has at least that holds `value`.
static int leastWidth(uint64_t value) {
  int width = 8;
  while (width < 64 && value >> width)
    width *= 2;
  return width;
}

static LogicalResult foldBitShift(NodeContext &n) {
  std::string direction = n.stringAttribute("direction", "");
  FailureOr<SmallVector<ConstantTensor>> operands = broadcastConstants(n);
  if (failed(operands) || failed(checkSameKind(n, 0, 1)))
    return failure();
  if (direction != "LEFT" && direction != "RIGHT")
    return n.error() << "expects direction LEFT or RIGHT, but got '"
                     << direction << "'";
  const ConstantTensor &a = (*operands)[0], &b = (*operands)[1];
  if (a.kind() != ElementKind::Int)
    return n.error() << "expects integer operands";
  ConstantTensor result(a.kind(), a.shape(), a.isSplat() && b.isSplat());
  uint64_t largest = 0, most = 0;
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k) {
    uint64_t x = a.intAt(k), by = b.intAt(k);
    uint64_t shifted = by > 63 ? 0 : direction == "LEFT" ? x << by : x >> by;
    bool isLost = direction == "LEFT" && by <= 63 && shifted >> by != x;
    largest = std::max(largest, x);
    most = std::max(most, isLost || (direction == "LEFT" && by > 63)
                              ? std::numeric_limits<uint64_t>::max()
                              : shifted);
    result.setInt(k, int64_t(shifted));
  }
  if (leastWidth(most) > leastWidth(largest))
    return n.error()
           << "shifts bits out of integers, or may do so: their width "
              "is not kept";
  return n.setResult(0, std::move(result));
}

ArrayRef<OpRow> bitOps() {
  static const OpRow rows[] = {
      {"BitwiseAnd", 18, exactly(2), nullptr, foldBitwise<'&'>},
      {"BitwiseOr", 18, exactly(2), nullptr, foldBitwise<'|'>},
      {"BitwiseXor", 18, exactly(2), nullptr, foldBitwise<'^'>},
      {"BitwiseNot", 18, exactly(1), nullptr, foldBitwiseNot},
      {"BitShift", 11, exactly(2), nullptr, foldBitShift},
  };
  return rows;
}

} // namespace pipewright::frontend
