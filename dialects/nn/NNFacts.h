//===- NNFacts.h - What nn ops say about themselves -------------*- C++ -*-===//
//
// The vocabulary of KernelOpInterface, PrecisionOpInterface and
// IntegerOpInterface, and the traits by which families of ops answer them.
// Passes ask ops in these words and keep no lists of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNFACTS_H
#define PIPEWRIGHT_DIALECTS_NN_NNFACTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace pipewright::nn {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// How an op walks its rows.
enum class RowWalk {
  /// It reads no tensor: constants and masks. Every kernel makes its own.
  Leaf,
  /// One result element from one element of each operand. It is cheap enough to
  /// be computed again for every element that repeats its result.
  Cheap,
  /// The same, but computed once.
  Costly,
  /// It moves elements; neighbours along the last dimension stay neighbours.
  Move,
  /// It moves elements, and its operand is read along another dimension.
  Transposition,
  /// It reduces rows, or works row by row.
  Rows,
  /// It reduces over several rows: the result is known after all of them.
  Columns,
  /// It needs several loop nests: only its last one can be shared, but logits
  /// that are cheap may be computed in each.
  Several,
};

/// What the rest of a nest may do with a result.
enum class ResultForm {
  /// Each element is known when its operands are.
  Element,
  /// There is one number for each row, known after the row.
  Row,
  /// It is known after all rows.
  Whole,
  /// So is this one, and later nests of the op read it again: a kernel needs
  /// memory for it, whether it is asked for or not.
  WholeInMemory,
};

/// How the loops of a kernel op go over rows.
struct RowSpace {
  RowWalk walk;
  /// Elements that its loops visit.
  int64_t elements;
  /// The lengths of a row that suit it.
  llvm::SmallVector<int64_t> columns;
  /// One for each result.
  llvm::SmallVector<ResultForm> results;

  bool isPointwise() const {
    return walk == RowWalk::Cheap || walk == RowWalk::Costly;
  }
  bool moves() const {
    return walk == RowWalk::Move || walk == RowWalk::Transposition;
  }
  /// Whether each element is computed by itself. None is a sum of several, so
  /// computing it again gives the same bits in whatever kernel.
  bool isElementwise() const {
    return walk == RowWalk::Leaf || isPointwise() || moves();
  }
};

/// Bytes that a buffer has for each element of a tensor.
int64_t bytesOfElement(mlir::Type element);

/// The number of elements of a tensor.
int64_t elementsOf(mlir::Value tensor);

/// An op with one result, whose operands broadcast to it.
RowSpace elementwiseSpace(mlir::Operation *op, RowWalk walk);

/// An op whose result is made of elements of its first operand; `keeps` says
/// whether both have the same indices along a dimension.
RowSpace movementSpace(mlir::Operation *op, RowWalk walk,
                       llvm::function_ref<bool(size_t)> keeps);

/// An op that works along the last dimension of `tensor`.
RowSpace rowSpace(mlir::Value tensor, llvm::ArrayRef<ResultForm> results);

/// A reduction of `x` over `axes`.
RowSpace reductionSpace(mlir::Value x, llvm::ArrayRef<int64_t> axes);

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

/// What an op wants a float operand to be where a model is lowered to bf16.
enum class PrecisionRule {
  /// Arithmetic that pays for a conversion of its operands.
  BF16,
  /// Sums of many elements, and what is added to them.
  F32,
  /// bf16 as soon as one of the operands is.
  FollowOperands,
  /// It takes both, and says by itself what it makes.
  Any,
  /// It takes both, and computes in f32 to its end.
  F32Inside,
};

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// What an op does with the integers of an operand.
enum class IntegerUse {
  /// Each element goes to the result, as it is. What else is there comes from
  /// other such operands, or is zero.
  Moved,
  /// The same, but only of some of the elements, whatever they are.
  Picked,
  /// The result is other numbers, or which elements it has depends on data.
  Computed,
  /// They say where something lies in a table.
  Index,
};

/// The indices that lie inside of a table.
struct IndexRange {
  /// They are in [0, limit).
  int64_t limit = 0;
  /// The one value beside them that points to nothing, and may.
  std::optional<int64_t> ignored = {};

  bool contains(int64_t index) const {
    return (index >= 0 && index < limit) || index == ignored;
  }
};

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

/// A kernel op with one result, whose operands broadcast to it.
template <RowWalk walk>
struct Elementwise {
  static_assert(walk == RowWalk::Leaf || walk == RowWalk::Cheap ||
                walk == RowWalk::Costly);

  template <typename ConcreteType>
  class Impl
      : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise<walk>::Impl> {
  public:
    RowSpace getRowSpace() {
      return elementwiseSpace(this->getOperation(), walk);
    }
  };
};

/// Floating point operations for each element of the first result.
template <int64_t flops>
struct FlopsPerElement {
  template <typename ConcreteType>
  class Impl : public mlir::OpTrait::TraitBase<ConcreteType,
                                               FlopsPerElement<flops>::Impl> {
  public:
    int64_t getFlops() {
      return flops * elementsOf(this->getOperation()->getResult(0));
    }
  };
};

/// All operands are wanted in one precision.
template <PrecisionRule precision>
struct InPrecision {
  template <typename ConcreteType>
  class Impl : public mlir::OpTrait::TraitBase<ConcreteType,
                                               InPrecision<precision>::Impl> {
  public:
    PrecisionRule getPrecision(mlir::OpOperand &) { return precision; }
  };
};

/// No operand has indices; all integers are used in one way.
template <IntegerUse use>
struct UsesIntegers {
  static_assert(use != IntegerUse::Index);

  template <typename ConcreteType>
  class Impl
      : public mlir::OpTrait::TraitBase<ConcreteType, UsesIntegers<use>::Impl> {
  public:
    IntegerUse getIntegerUse(mlir::OpOperand &) { return use; }
    IndexRange getIndexRange() { return {}; }
  };
};

/// Weights, what reads and writes them, and calls of kernels: passes know each
/// of these ops by its name.
template <typename ConcreteType>
class KnownByName : public mlir::OpTrait::TraitBase<ConcreteType, KnownByName> {
};

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNFACTS_H
