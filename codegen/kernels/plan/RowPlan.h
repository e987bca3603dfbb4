//===- RowPlan.h - which loop nest computes which tensor --------*- C++ -*-===//
//
// Plans a kernel of linalg.generic ops as few loop nests over rows and columns.
// Each nest makes one or more passes over the columns of a row: a pass may use
// what an earlier pass reduced over the same row. All other pointwise ops are
// computed where they are used.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWPLAN_H
#define PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWPLAN_H

#include "codegen/kernels/plan/RowIndex.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace pipewright::codegen {

/// What a root writes, given the rows and columns of its nest.
enum class RootKind {
  /// One value per row and column, stored.
  Element,
  /// One value per row, stored.
  RowScalar,
  /// Reduces the columns of a row; known after its pass.
  RowReduction,
  /// Reduces columns and some of the rows, through memory once per row.
  RowAccumulation,
  /// Reduces rows, through memory once per element.
  ElementAccumulation,
};

/// A tensor that gets storage, or is reduced.
struct Root {
  mlir::Value tensor;
  RootKind kind = RootKind::Element;
  unsigned nest = 0;
  unsigned pass = 0;
  /// Position among the function's results, or -1.
  int result = -1;
  /// Storage of this row only: computed in one pass, used again in a later one.
  bool rowTemporary = false;
  /// Whether the whole tensor needs storage.
  bool stored = false;

  /// The op when this is a reduction, else null.
  mlir::linalg::GenericOp reduction() const;
};

struct Nest {
  /// Numbers of columns that every root of this nest permits, widest first.
  llvm::SmallVector<int64_t> candidates;
  int64_t elements = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  unsigned passes = 1;
  /// Whether a step along the columns jumps in memory: a transpose.
  bool strided = false;
  /// Arguments of which several passes read the element at the row and column.
  llvm::SmallVector<mlir::Value> readAgain;
};

/// True if the op is a generic without reduction loops.
bool isPointwise(mlir::linalg::GenericOp op);

/// Where to cut `shape` so that `columns` elements lie behind the cut.
std::optional<unsigned> findCut(llvm::ArrayRef<int64_t> shape, int64_t columns);

/// Follows collapse_shape and expand_shape to the tensor with the data.
mlir::Value stripViews(mlir::Value tensor);

/// The index that `expr` of an indexing map denotes for loops at `loops`.
Index mapIndex(mlir::AffineExpr expr, llvm::ArrayRef<Index> loops);

/// The indices into the source of a slice with static offsets and strides.
llvm::SmallVector<Index> sliceIndices(mlir::tensor::ExtractSliceOp slice,
                                      llvm::ArrayRef<Index> indices);

class RowPlan {
public:
  /// Plans all results of `func`. Emits an error and returns failure when the
  /// kernel has an op that cannot be planned.
  mlir::LogicalResult build(mlir::func::FuncOp func);

  llvm::SmallVector<Root> roots;
  llvm::SmallVector<Nest> nests;

  /// The root that computes `tensor`, or null.
  const Root *rootOf(mlir::Value tensor) const;

  /// Row and column expressions of a nest (zero where there is only one).
  mlir::AffineExpr row(const Nest &nest) const;
  mlir::AffineExpr column(const Nest &nest) const;
  /// Offset of the element at the row and column.
  mlir::AffineExpr element(const Nest &nest) const;

  /// Indices at which a nest computes a root: of its tensor, or of its loops
  /// when it is a reduction. Nothing when the shape does not fit the nest.
  std::optional<llvm::SmallVector<Index>> indicesOf(const Root &root,
                                                    const Nest &nest) const;

private:
  /// One look at everything that a root needs, without emitting anything.
  struct Walk {
    unsigned nest;
    const Nest &shape;
    unsigned pass = 0;
    unsigned symbols = 0;
    bool strided = false;
    /// Stop at tensors stored by a pass before this one.
    std::optional<unsigned> currentPass = {};
    llvm::DenseSet<std::pair<mlir::Value, mlir::AffineExpr>> seen = {};
    /// Pointwise results that are needed at the row and column themselves.
    llvm::SmallVector<mlir::Value> elements = {};
    /// Arguments that are read there.
    llvm::SmallVector<mlir::Value> arguments = {};
  };

  std::optional<RootKind> classify(const Root &root, const Nest &nest) const;
  /// The pass in which `root` can be computed, or nothing if it cannot.
  std::optional<unsigned> probe(const Root &root, unsigned nest,
                                const Nest &shape, Walk *touched = nullptr);
  bool visit(Walk &walk, mlir::Value tensor, llvm::ArrayRef<Index> indices);
  bool visitBody(Walk &walk, mlir::linalg::GenericOp generic,
                 llvm::ArrayRef<Index> loops);
  void assignNest(Root root);
  void chooseColumns();
  void addRowTemporaries();
  void findReadAgain();

  mlir::MLIRContext *context = nullptr;
  llvm::DenseMap<mlir::Value, unsigned> rootIndex;
  /// Roots that a later nest reads from memory.
  llvm::DenseSet<mlir::Value> readLater;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWPLAN_H
