//===- Reference.h - What nn ops mean, executable ---------------*- C++ -*-===//
//
// A reference interpreter of nn ops in double precision. Its only goal is to
// be readable: every op is a loop over its formula in the op's description.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_NN_REFERENCE_H
#define PIPEWRIGHT_TEST_UNIT_NN_REFERENCE_H

#include "dialects/nn/NNOps.h"
#include <functional>
#include <vector>

namespace pipewright::nn::reference {

/// A tensor of any element type; integers and truth values are doubles too.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  Tensor() = default;
  explicit Tensor(llvm::ArrayRef<int64_t> shape, double value = 0.0);

  int64_t size() const { return static_cast<int64_t>(data.size()); }
  int64_t dim(int64_t index) const { return shape[index]; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  /// The element at an index; an index of another rank, or beyond a dimension
  /// of 1, is broadcast.
  double &at(llvm::ArrayRef<int64_t> index);
  double at(llvm::ArrayRef<int64_t> index) const {
    return const_cast<Tensor *>(this)->at(index);
  }
};

/// Calls `body` with every index of `shape` in row-major order.
void forEach(llvm::ArrayRef<int64_t> shape,
             const std::function<void(llvm::ArrayRef<int64_t>)> &body);

using Values = llvm::DenseMap<mlir::Value, Tensor>;

/// Computes the op's results from the values of its operands. False when the
/// interpreter does not know the op.
bool evaluate(mlir::Operation *op, Values &values);

/// The families, each in a file of its own; `evaluate` asks one after the
/// other.
bool evaluateElementwise(mlir::Operation *op, Values &values);
bool evaluateShape(mlir::Operation *op, Values &values);
bool evaluateRows(mlir::Operation *op, Values &values);
bool evaluateWindows(mlir::Operation *op, Values &values);

} // namespace pipewright::nn::reference

#endif // PIPEWRIGHT_TEST_UNIT_NN_REFERENCE_H
