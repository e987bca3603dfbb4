//===- Rows.h - Elements and slices as rows of tables ----------*- C++ -*-===//
//
// Each index of a gather or scatter becomes the number of a row of a table.
// Reading is nn.embedding, whose gradient adds up in a fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_ROWS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_ROWS_H

#include "frontends/onnx/NodeContext.h"

#include <vector>

namespace pipewright::frontend {

/// Which rows of a table a node reads or writes. The data of a node is a table
/// of `rows` rows of `width` elements; index `i` of the node is row
/// `numbers[i]`.
struct Rows {
  int64_t rows = 1, width = 1;
  std::vector<int64_t> numbers;
};

/// The data of GatherND and ScatterND: `batchDims` dimensions that indices
/// share, `indexed` ones that they count, and slices.
struct NdForm {
  int64_t batchDims = 0, indexed = 0;
  Shape counted;
  int64_t batch = 1, rows = 1, width = 1;
  Shape result;
};

/// A constant index counted from 0; fails if it is out of range.
llvm::FailureOr<int64_t> countFromStart(NodeContext &n, int64_t index,
                                        int64_t dim);
/// Computed indices, with those that count from the end counted from 0.
mlir::Value countFromStart(NodeContext &n, mlir::Value index, int64_t dim);

/// Numbers of rows that are known.
mlir::Value madeNumbers(NodeContext &n, llvm::ArrayRef<int64_t> numbers);

/// Rows of `table` [rows, width], which is input 0 under another shape, by
/// numbers of any shape. Whole numbers are looked up as floats.
mlir::Value lookUp(NodeContext &n, mlir::Value table, mlir::Value numbers);

/// The axis of GatherElements and ScatterElements; fails unless indices have
/// the rank of the data and reach no further than it along the other axes.
llvm::FailureOr<int64_t> readElementsAxis(NodeContext &n);
/// Each element is a row; constant indices.
llvm::FailureOr<Rows> elementRows(NodeContext &n, int64_t axis);
/// The same numbers of computed indices, in their shape.
mlir::Value computeElementNumbers(NodeContext &n, int64_t axis);

llvm::FailureOr<NdForm> readNdForm(NodeContext &n, int64_t batchDims);
/// Constant indices as numbers of rows within each batch.
llvm::FailureOr<std::vector<int64_t>> readNumbers(NodeContext &n,
                                                  const NdForm &form);
/// Computed indices as numbers of rows of all batches.
mlir::Value computeNumbers(NodeContext &n, const NdForm &form);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_ROWS_H
