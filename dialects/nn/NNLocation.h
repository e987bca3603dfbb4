//===- NNLocation.h - What locations say about values -----------*- C++ -*-===//
//
// Locations carry the model's names to the generated code. Two things that ops
// do not say by themselves travel with them: that an op makes a gradient, and
// where each result of a kernel comes from.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H
#define PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

namespace pipewright::nn {

/// The same place, for an op that makes a gradient: `fused<"gradient">[loc]`.
mlir::Location asGradient(mlir::Location loc);
bool isGradient(mlir::Location loc);

/// The location of an op that stands for several: its own, and what each of
/// its results has from the op that made it.
mlir::Location withResults(mlir::Location loc,
                           llvm::ArrayRef<mlir::Location> results);

/// Where the value was made, which is its op's location unless that says more.
mlir::Location locationOf(mlir::Value value);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H
