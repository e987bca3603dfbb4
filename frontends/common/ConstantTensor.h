//===- ConstantTensor.h - A tensor known at import -------------*- C++ -*-===//
//
// What shape arithmetic, masks and small constants are while a model is
// imported. Splats hold one element whatever their size. No MLIR operation is
// involved until a constant meets a value that is computed at run time.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_CONSTANTTENSOR_H
#define PIPEWRIGHT_FRONTENDS_COMMON_CONSTANTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <vector>

namespace pipewright::frontend {

using Shape = llvm::SmallVector<int64_t, 4>;

/// The element types that the nn dialect computes with; ONNX's others are
/// widened or narrowed to these.
enum class ElementKind { Float, Int, Bool };

mlir::Type elementType(ElementKind kind, mlir::MLIRContext *context);

/// Product of the dimensions; the largest number where it is larger.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);

class ConstantTensor {
public:
  using Ptr = std::shared_ptr<const ConstantTensor>;

  /// Zeros.
  ConstantTensor(ElementKind kind, llvm::ArrayRef<int64_t> shape,
                 bool splat = false);
  static ConstantTensor ofInts(llvm::ArrayRef<int64_t> values);
  static ConstantTensor scalar(int64_t value);
  static ConstantTensor scalar(float value);

  ElementKind kind() const { return elementKind; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  int64_t rank() const { return dims.size(); }
  int64_t size() const { return elementCount(dims); }
  /// True when one stored element stands for all.
  bool isSplat() const { return splat; }
  int64_t storedSize() const { return splat ? 1 : size(); }

  // Element access by row-major index; the kind must match.
  float floatAt(int64_t i) const { return floats[splat ? 0 : i]; }
  int64_t intAt(int64_t i) const { return ints[splat ? 0 : i]; }
  bool boolAt(int64_t i) const { return bools[splat ? 0 : i]; }
  void setFloat(int64_t i, float v) { floats[i] = v; }
  void setInt(int64_t i, int64_t v) { ints[i] = v; }
  void setBool(int64_t i, bool v) { bools[i] = v; }
  /// Copies one element of a tensor of the same kind.
  void copyElement(int64_t to, const ConstantTensor &from, int64_t index);

  /// The stored elements as little-endian bytes; a bool is one byte.
  llvm::ArrayRef<char> rawBytes() const;

  ConstantTensor convertTo(ElementKind kind) const;
  /// The same elements under another shape of the same size.
  ConstantTensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  /// result[i] = this[source(i)].
  ConstantTensor remapped(llvm::ArrayRef<int64_t> shape,
                          llvm::function_ref<int64_t(int64_t)> source) const;

  /// All elements equal, whether stored once or not.
  bool isUniform() const;
  mlir::DenseElementsAttr toAttr(mlir::MLIRContext *context) const;

  /// Made by ConstantOfShape: where an op takes a weight it is one, with this
  /// value (the ONNX project's light models).
  bool weightLike = false;

private:
  ElementKind elementKind;
  Shape dims;
  bool splat;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<uint8_t> bools;
};

/// What a constant looks like to attention.
struct CausalPattern {
  enum Kind { NotCausal, Lower, NotLower, Additive } kind = NotCausal;
  /// Additive: the value above the diagonal (-inf or the like); 0 elsewhere.
  float masked = 0;
};

/// Recognises a square triangular mask in the last two dimensions, the others
/// being 1: true on and below the diagonal, its complement, or its additive
/// float form.
CausalPattern matchCausal(const ConstantTensor &tensor);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_CONSTANTTENSOR_H
