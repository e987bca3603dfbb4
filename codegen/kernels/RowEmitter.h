//===- RowEmitter.h - write a planned kernel as loops -----------*- C++ -*-===//
//
// Emits the loop nests of a RowPlan over flat buffers. Values are demanded from
// the roots: what a root needs is emitted once per scope (row or column).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_ROWEMITTER_H
#define PIPEWRIGHT_CODEGEN_KERNELS_ROWEMITTER_H

#include "codegen/kernels/RowPlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace pipewright::codegen {

class RowEmitter {
public:
  /// Writes to `builder`, which stands in the entry block of the new function.
  /// `buffers` maps the arguments of the planned function to flat memrefs,
  /// `results` has one memref per result.
  RowEmitter(const RowPlan &plan, mlir::OpBuilder &builder, mlir::Location loc,
             llvm::DenseMap<mlir::Value, mlir::Value> buffers,
             llvm::ArrayRef<mlir::Value> results);

  mlir::LogicalResult emit();

private:
  struct Scope {
    explicit Scope(mlir::OpBuilder builder) : builder(builder) {}
    mlir::OpBuilder builder;
    llvm::DenseMap<mlir::AffineExpr, mlir::Value> exprs;
    llvm::DenseMap<std::pair<mlir::Value, mlir::AffineExpr>, mlir::Value>
        elements;
  };
  struct PendingStore {
    mlir::Value value, buffer, offset;
  };

  mlir::LogicalResult emitNest(unsigned number);
  bool needsTiles(unsigned number) const;
  mlir::LogicalResult emitPass(unsigned number, unsigned pass);
  /// Emits what `roots` compute at one column into `inner`, which is or lies in
  /// `outer`. Its counter is the column, less `base` if there is one, and then
  /// also the lane of reductions.
  mlir::LogicalResult emitColumns(unsigned number,
                                  llvm::ArrayRef<const Root *> roots,
                                  mlir::scf::ForOp outer,
                                  mlir::scf::ForOp inner, mlir::Value base);
  mlir::LogicalResult openLanes(llvm::ArrayRef<const Root *> reductions,
                                int64_t width);
  void closeLanes(const Root &root, const Nest &nest);
  void
  forEachLane(int64_t count,
              llvm::function_ref<void(mlir::OpBuilder &, mlir::Value)> body);
  mlir::Value combine(const Root &root, mlir::Value x, mlir::Value y,
                      mlir::OpBuilder &builder);
  mlir::LogicalResult prepareAccumulator(const Root &root);

  mlir::Value emitElement(mlir::Value tensor, llvm::ArrayRef<Index> indices);
  mlir::Value emitBody(mlir::linalg::GenericOp op, llvm::ArrayRef<Index> loops,
                       mlir::Value accumulator, Scope &scope);
  mlir::Value emitExpr(mlir::AffineExpr expr, Scope &scope);
  mlir::Value emitConstant(mlir::Attribute element, mlir::Type type,
                           Scope &scope);
  mlir::Value load(mlir::Value buffer, mlir::AffineExpr offset, mlir::Type type,
                   Scope &scope);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value offset,
             mlir::OpBuilder &builder);
  mlir::Value rootOffset(const Root &root, llvm::ArrayRef<Index> indices,
                         Scope &scope);
  bool needsColumn(mlir::AffineExpr expr) const;
  mlir::Value allocate(mlir::Type element, int64_t size);
  mlir::Value emptyError(mlir::Operation *op);

  const RowPlan &plan;
  mlir::OpBuilder &entry;
  mlir::Block *entryBlock;
  mlir::Location loc;
  mlir::MLIRContext *context;
  /// Storage of arguments, stored roots, row temporaries, constants.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::SmallVector<mlir::Value> results;
  /// Partial results of each reduction over the columns of a row.
  llvm::DenseMap<mlir::Value, mlir::Value> laneBuffers;
  llvm::SmallVector<mlir::Value> heapBuffers;
  /// Run-time numbers in index expressions; those set need the column.
  llvm::SmallVector<std::pair<mlir::Value, bool>> symbols;
  /// Reductions of the current row that are already known.
  llvm::DenseMap<mlir::Value, mlir::Value> rowValues;
  unsigned currentNest = 0, currentPass = 0;
  /// The columns of the tile that is open, or null for all columns.
  mlir::Value tileBegin, tileEnd;
  bool columnOpen = false;
  bool failed = false;
  int64_t stackBytes = 0;
  std::optional<Scope> rowScope, columnScope;
};

/// The type that one element has in memory: i1 takes a byte.
mlir::Type storageType(mlir::Type element);

/// The flat buffer type of a tensor type.
mlir::MemRefType flatBufferType(mlir::RankedTensorType type);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_ROWEMITTER_H
