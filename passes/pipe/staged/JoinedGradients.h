//===- JoinedGradients.h - Join the gradients of repeated uses --*- C++ -*-===//
//
// Where a model splits a tensor (queries, keys and values), each part's
// gradient comes back padded with zeros, and the sum of these is the parts
// beside each other. Where it multiplies by one matrix again and again (the
// steps of a recurrent layer), the matrix's gradient is a sum of products,
// which is one product of all rows.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_JOINEDGRADIENTS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_JOINEDGRADIENTS_H

#include "mlir/IR/PatternMatch.h"

namespace pipewright::pipe {

/// Adds the patterns that turn sums of padded parts, and what is added to one
/// weight in padded parts, into one `nn.concat`, and sums of products that are
/// flat for their size into one `nn.matmul`.
void populateJoinedGradientPatterns(mlir::RewritePatternSet &patterns);

/// Joins such products where each is added to a weight's gradient by itself, if
/// they have few rows.
void joinAddedProducts(mlir::Block &backward);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_JOINEDGRADIENTS_H
