//===- FunctionResults.h - Loss and outputs of the function ----*- C++ -*-===//
//
// Ends the imported function: finds or attaches the loss, makes it the first
// result, and names the results.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONRESULTS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONRESULTS_H

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Importer.h"

namespace pipewright::frontend {

llvm::LogicalResult buildResults(GraphImporter &graph,
                                 const ImportOptions &options);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONRESULTS_H
