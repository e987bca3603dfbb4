//===- NNAttributeNames.h - Attributes that stand beside ops ----*- C++ -*-===//
//
// Discardable attributes of weights, functions and launches, which no op
// declares.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNATTRIBUTENAMES_H
#define PIPEWRIGHT_DIALECTS_NN_NNATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace pipewright::nn {

/// The name that users know: of an argument or a result of a function; of a
/// weight, where its symbol had to be another.
inline constexpr llvm::StringLiteral kName = "nn.name";

/// On a launch, the numbers of the results that its kernel adds to what is
/// there; on such a result of the kernel, that it is added.
inline constexpr llvm::StringLiteral kAdded = "nn.added";

/// On a result of a kernel, the argument whose buffer it is written to.
inline constexpr llvm::StringLiteral kInPlace = "nn.in_place";

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNATTRIBUTENAMES_H
