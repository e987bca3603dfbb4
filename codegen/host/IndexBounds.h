//===- IndexBounds.h - Which indices data may have --------------*- C++ -*-===//
//
// Indices come from a user's data and say where something lies in a table. The
// two directions between an input and a table: what the data of an input is
// refused for, before a step, and what has to be looked at in a step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_INDEXBOUNDS_H
#define PIPEWRIGHT_CODEGEN_HOST_INDEXBOUNDS_H

#include "codegen/host/ProgramLayout.h"

namespace pipewright::codegen {

/// The tables that the integers of one input are indices of.
class IndexBounds {
public:
  /// Follows an argument of a stage's body to tables, through all that moves
  /// elements, kernels and other stages. Fails at an op that does not say what
  /// it does with integers.
  mlir::LogicalResult follow(const ProgramLayout &layout,
                             mlir::BlockArgument argument);

  /// Sets the range outside of which every table that a value may reach would
  /// reject it.
  void apply(Port &port) const;

private:
  struct Table {
    nn::IndexRange range;
    /// Whether every value of the input gets there.
    bool whole;
  };

  friend class IndexWalk;
  llvm::SmallVector<Table> tables;
};

/// Whether `value`, in a stage's body, is made of constants and of inputs whose
/// data is refused before the step if it is not in `range`.
bool isBounded(const ProgramLayout &layout, mlir::Value value,
               const nn::IndexRange &range);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_INDEXBOUNDS_H
