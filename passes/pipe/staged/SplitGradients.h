//===- SplitGradients.h - Join the gradients of a split value ---*- C++ -*-===//
//
// Where a model splits a tensor (queries, keys and values), each part's
// gradient comes back padded with zeros, and the sum of these is the parts
// beside each other.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_SPLITGRADIENTS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_SPLITGRADIENTS_H

#include "mlir/IR/PatternMatch.h"

namespace pipewright::pipe {

/// Adds the pattern that turns such a sum into one `nn.concat`.
void populateSplitGradientPatterns(mlir::RewritePatternSet &patterns);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_SPLITGRADIENTS_H
