//===- NNLocation.h - What locations say about values -----------*- C++ -*-===//
//
// Locations carry the names of the model's nodes, and of its modules. Two
// things that ops do not say by themselves travel with them: that an op makes a
// gradient, and where each result of a kernel comes from.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H
#define PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

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

/// The name that a location carries, empty where it has none: of several
/// fused ones the last, which is the op that the fused code ends with.
llvm::StringRef nameOfLocation(mlir::Location loc);

/// What people call the part of the model that a location is in, such as
/// `transformer.h.0.ln_1`: the name that is noted beside its own
/// (`loc("node_add"("h.0.ln_1"))`), else its own without the last part.
std::string layerOfLocation(mlir::Location loc);

/// `/h.0/ln_1/Add_output_0` -> `h`, `0`, `ln_1`, `Add`: exporters separate
/// namespaces by slashes, dots or double colons, and add `_output_0` to the
/// name of a node's first result.
llvm::SmallVector<llvm::StringRef> partsOfName(llvm::StringRef name);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLOCATION_H
