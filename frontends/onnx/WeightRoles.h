//===- WeightRoles.h - Which weights are trained ---------------*- C++ -*-===//
//
// A float initializer may be a parameter or a buffer of the model, and ONNX
// does not tell. The exporter's notes do, where there are any; without them
// only what looks like a table in every respect is taken for a buffer. The user
// has the last word.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTROLES_H
#define PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTROLES_H

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Importer.h"

namespace pipewright::frontend {

/// Gives every weight of the imported module its role. Fails where a pattern of
/// the user matches nothing, or where nothing is left to train.
llvm::LogicalResult assignRoles(GraphImporter &graph,
                                const ImportOptions &options);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTROLES_H
