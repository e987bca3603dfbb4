//===- ConstantTensor.cpp - A tensor known at import ----------------------===//
//
// Storage, conversion and pattern tests of import-time constants.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ConstantTensor.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace pipewright::frontend {

Type elementType(ElementKind kind, MLIRContext *context) {
  Builder b(context);
  switch (kind) {
  case ElementKind::Float:
    return b.getF32Type();
  case ElementKind::Int:
    return b.getI64Type();
  case ElementKind::Bool:
    return b.getI1Type();
  }
  llvm_unreachable("covered switch");
}

int64_t elementCount(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t dim : shape)
    if (llvm::MulOverflow(count, dim, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

ConstantTensor::ConstantTensor(ElementKind kind, ArrayRef<int64_t> shape,
                               bool splat)
    : elementKind(kind), dims(shape), splat(splat) {
  size_t stored = storedSize();
  switch (kind) {
  case ElementKind::Float:
    floats.resize(stored);
    break;
  case ElementKind::Int:
    ints.resize(stored);
    break;
  case ElementKind::Bool:
    bools.resize(stored);
    break;
  }
}

ConstantTensor ConstantTensor::ofInts(ArrayRef<int64_t> values) {
  ConstantTensor result(ElementKind::Int, {int64_t(values.size())});
  result.ints.assign(values.begin(), values.end());
  return result;
}

ConstantTensor ConstantTensor::scalar(int64_t value) {
  ConstantTensor result(ElementKind::Int, {});
  result.ints[0] = value;
  return result;
}

ConstantTensor ConstantTensor::scalar(float value) {
  ConstantTensor result(ElementKind::Float, {});
  result.floats[0] = value;
  return result;
}

void ConstantTensor::copyElement(int64_t to, const ConstantTensor &from,
                                 int64_t index) {
  switch (elementKind) {
  case ElementKind::Float:
    return setFloat(to, from.floatAt(index));
  case ElementKind::Int:
    return setInt(to, from.intAt(index));
  case ElementKind::Bool:
    return setBool(to, from.boolAt(index));
  }
}

ArrayRef<char> ConstantTensor::rawBytes() const {
  auto view = [](const auto &data) {
    return ArrayRef<char>(reinterpret_cast<const char *>(data.data()),
                          data.size() * sizeof(data[0]));
  };
  switch (elementKind) {
  case ElementKind::Float:
    return view(floats);
  case ElementKind::Int:
    return view(ints);
  case ElementKind::Bool:
    return view(bools);
  }
  llvm_unreachable("covered switch");
}

/// Out-of-range and NaN conversions saturate; C++ leaves them undefined.
static int64_t toInt(float v) {
  if (std::isnan(v))
    return 0;
  if (v >= 9.2233720368547758e18f)
    return INT64_MAX;
  if (v <= -9.2233720368547758e18f)
    return INT64_MIN;
  return int64_t(v);
}

ConstantTensor ConstantTensor::convertTo(ElementKind kind) const {
  if (kind == elementKind)
    return *this;
  ConstantTensor result(kind, dims, splat);
  for (int64_t i = 0, e = storedSize(); i < e; ++i) {
    bool isFloat = elementKind == ElementKind::Float;
    int64_t asInt = elementKind == ElementKind::Int    ? ints[i]
                    : elementKind == ElementKind::Bool ? bools[i]
                                                       : toInt(floats[i]);
    float asFloat = isFloat ? floats[i] : float(asInt);
    if (kind == ElementKind::Float)
      result.floats[i] = asFloat;
    else if (kind == ElementKind::Int)
      result.ints[i] = asInt;
    else
      result.bools[i] = isFloat ? asFloat != 0 : asInt != 0;
  }
  return result;
}

ConstantTensor ConstantTensor::reshaped(ArrayRef<int64_t> shape) const {
  ConstantTensor result = *this;
  result.dims.assign(shape.begin(), shape.end());
  return result;
}

ConstantTensor
ConstantTensor::remapped(ArrayRef<int64_t> shape,
                         llvm::function_ref<int64_t(int64_t)> source) const {
  if (splat)
    return reshaped(shape);
  ConstantTensor result(elementKind, shape);
  for (int64_t i = 0, e = result.size(); i < e; ++i)
    result.copyElement(i, *this, source(i));
  return result;
}

bool ConstantTensor::isUniform() const {
  ArrayRef<char> bytes = rawBytes();
  int64_t stored = storedSize();
  if (stored == 0)
    return false;
  size_t width = bytes.size() / stored;
  for (int64_t i = 1; i < stored; ++i)
    if (bytes.slice(i * width, width) != bytes.take_front(width))
      return false;
  return true;
}

DenseElementsAttr ConstantTensor::toAttr(MLIRContext *context) const {
  auto type = RankedTensorType::get(dims, elementType(elementKind, context));
  bool uniform = isUniform();
  switch (elementKind) {
  case ElementKind::Float:
    return uniform ? DenseElementsAttr::get(type, floats[0])
                   : DenseElementsAttr::get(type, ArrayRef<float>(floats));
  case ElementKind::Int:
    return uniform ? DenseElementsAttr::get(type, ints[0])
                   : DenseElementsAttr::get(type, ArrayRef<int64_t>(ints));
  case ElementKind::Bool: {
    if (uniform)
      return DenseElementsAttr::get(type, bool(bools[0]));
    SmallVector<bool> values(bools.begin(), bools.end());
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  }
  llvm_unreachable("covered switch");
}

CausalPattern matchCausal(const ConstantTensor &tensor) {
  ArrayRef<int64_t> shape = tensor.shape();
  int64_t rank = shape.size();
  if (rank < 2 || tensor.isSplat() || tensor.kind() == ElementKind::Int)
    return {};
  int64_t n = shape[rank - 1];
  if (n < 2 || shape[rank - 2] != n || tensor.size() != n * n)
    return {};
  CausalPattern result;
  bool isFloat = tensor.kind() == ElementKind::Float;
  if (isFloat) {
    result.masked = tensor.floatAt(1);
    // Anything that softmax does not turn into 0 is a bias, not a mask.
    if (!(result.masked <= -1e4f))
      return {};
    result.kind = CausalPattern::Additive;
  } else {
    result.kind =
        tensor.boolAt(0) ? CausalPattern::Lower : CausalPattern::NotLower;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      bool lower = j <= i;
      bool fits = isFloat
                      ? tensor.floatAt(i * n + j) == (lower ? 0 : result.masked)
                      : tensor.boolAt(i * n + j) ==
                            (lower == (result.kind == CausalPattern::Lower));
      if (!fits)
        return {};
    }
  }
  return result;
}

} // namespace pipewright::frontend
