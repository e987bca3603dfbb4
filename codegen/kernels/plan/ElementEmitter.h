//===- ElementEmitter.h - write the elements of a planned kernel *- C++ -*-===//
//
// Emits scalars over flat buffers. Values are demanded from the roots of a
// RowPlan: what a root needs is emitted once per scope (row or column). The
// loops or threads around them, and how memory is read, are up to the target.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ELEMENTEMITTER_H
#define PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ELEMENTEMITTER_H

#include "codegen/kernels/plan/RowPlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace pipewright::codegen {

class ElementEmitter {
public:
  virtual ~ElementEmitter() = default;

protected:
  struct Scope {
    explicit Scope(mlir::OpBuilder builder) : builder(builder) {}
    mlir::OpBuilder builder;
    llvm::DenseMap<mlir::AffineExpr, mlir::Value> exprs;
    llvm::DenseMap<std::pair<mlir::Value, mlir::AffineExpr>, mlir::Value>
        elements;
  };

  /// `buffers` maps the arguments of the planned function, and its constants,
  /// to flat memrefs, `results` has one memref per result.
  ElementEmitter(const RowPlan &plan, mlir::Location loc,
                 llvm::DenseMap<mlir::Value, mlir::Value> buffers,
                 llvm::ArrayRef<mlir::Value> results);

  mlir::Value emitElement(mlir::Value tensor, llvm::ArrayRef<Index> given);
  mlir::Value emitBody(mlir::linalg::GenericOp op, llvm::ArrayRef<Index> loops,
                       mlir::Value accumulator, Scope &scope);
  mlir::Value emitExpr(mlir::AffineExpr expr, Scope &scope);
  mlir::Value emitConstant(mlir::Attribute element, mlir::Type type,
                           Scope &scope);
  /// The offset at which a root stores what it computes. `indices` are those of
  /// its tensor, or of its loops when it is a reduction.
  mlir::AffineExpr rootOffsetExpr(const Root &root,
                                  llvm::ArrayRef<Index> indices) const;
  mlir::Value rootOffset(const Root &root, llvm::ArrayRef<Index> indices,
                         Scope &scope) {
    return emitExpr(rootOffsetExpr(root, indices), scope);
  }
  /// Reads one element that stands at `offset` of `buffer`.
  virtual mlir::Value load(mlir::Value buffer, mlir::AffineExpr offset,
                           mlir::Type type, Scope &scope);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value offset,
             mlir::OpBuilder &builder);
  /// Between the type of an element and that of its storage.
  mlir::Value fromStorage(mlir::Value value, mlir::Type type,
                          mlir::OpBuilder &builder) const;
  mlir::Value toStorage(mlir::Value value, mlir::Type stored,
                        mlir::OpBuilder &builder) const;
  /// Joins two partial results of a reduction.
  mlir::Value combine(const Root &root, mlir::Value x, mlir::Value y,
                      mlir::OpBuilder &builder) const;
  bool needsColumn(mlir::AffineExpr expr) const;
  mlir::Value emptyError(mlir::Operation *op);
  /// Whether an argument's buffer is that of a result of an earlier nest or
  /// pass.
  bool isOverwritten(mlir::Value buffer) const;
  mlir::Value overwrittenError(mlir::BlockArgument argument);

  const RowPlan &plan;
  mlir::Location loc;
  mlir::MLIRContext *context;
  /// Storage of arguments, stored roots, row temporaries, constants.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::SmallVector<mlir::Value> results;
  /// Run-time numbers in index expressions; those set need the column.
  llvm::SmallVector<std::pair<mlir::Value, bool>> symbols;
  /// Reductions of the current row that are already known.
  llvm::DenseMap<mlir::Value, mlir::Value> rowValues;
  /// Reductions of this nest that are in memory for all rows already.
  llvm::DenseSet<mlir::Value> storedRowValues;
  unsigned currentNest = 0, currentPass = 0;
  bool failed = false;
  /// What is open; no column while a row's own values are emitted.
  Scope *rowScope = nullptr, *columnScope = nullptr;
};

/// The op that adds an element to a sum or a maximum, or null.
mlir::Operation *combinerOf(mlir::linalg::GenericOp op);

/// What a reduction starts from; combining it with a value changes nothing.
mlir::TypedAttr neutralOf(mlir::Operation *combiner, mlir::Type type);

/// The type that one element has in memory: i1 takes a byte.
mlir::Type storageType(mlir::Type element);

/// The flat buffer type of a tensor type.
mlir::MemRefType flatBufferType(mlir::RankedTensorType type);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ELEMENTEMITTER_H
