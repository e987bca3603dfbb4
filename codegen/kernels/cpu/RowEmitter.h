//===- RowEmitter.h - write a planned kernel as loops -----------*- C++ -*-===//
//
// Emits the loop nests of a RowPlan, for one thread of a CPU.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_CPU_ROWEMITTER_H
#define PIPEWRIGHT_CODEGEN_KERNELS_CPU_ROWEMITTER_H

#include "codegen/kernels/plan/ElementEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace pipewright::codegen {

class RowEmitter : ElementEmitter {
public:
  /// Writes to `builder`, which stands in the entry block of the new function.
  /// `buffers` maps the arguments of the planned function to flat memrefs,
  /// `results` has one memref per result.
  RowEmitter(const RowPlan &plan, mlir::OpBuilder &builder, mlir::Location loc,
             llvm::DenseMap<mlir::Value, mlir::Value> buffers,
             llvm::ArrayRef<mlir::Value> results);

  mlir::LogicalResult emit();

private:
  struct PendingStore {
    mlir::Value value, buffer, offset;
  };

  mlir::LogicalResult emitNest(unsigned number);
  bool needsTiles(unsigned number) const;
  /// A loop over tiles of `size` of `count`; what follows is emitted into it.
  /// Returns where a tile begins and ends.
  std::pair<mlir::Value, mlir::Value> openTiles(int64_t count, int64_t size);
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
  mlir::LogicalResult prepareAccumulator(const Root &root);

  mlir::Value allocate(mlir::Type element, int64_t size);

  mlir::OpBuilder &entry;
  mlir::Block *entryBlock;
  /// Partial results of each reduction over the columns of a row.
  llvm::DenseMap<mlir::Value, mlir::Value> laneBuffers;
  llvm::SmallVector<mlir::Value> heapBuffers;
  /// The columns of the tile that is open, or null for all columns.
  mlir::Value tileBegin, tileEnd;
  int64_t stackBytes = 0;
  std::optional<Scope> rowStorage, columnStorage;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_CPU_ROWEMITTER_H
