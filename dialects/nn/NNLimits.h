//===- NNLimits.h - How large tensors and windows may be --------*- C++ -*-===//
//
// Sizes come from files. Within these limits, sums and products of them over a
// whole model are numbers, and nothing is done for each of them in turn.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLIMITS_H
#define PIPEWRIGHT_DIALECTS_NN_NNLIMITS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>

namespace pipewright::nn {

/// The most elements that a tensor may have: 4 TiB of f32.
inline constexpr int64_t kMaxTensorElements = int64_t(1) << 40;
inline constexpr size_t kMaxTensorRank = 64;
/// A kernel's size, a stride, a pad or a dilation.
inline constexpr int64_t kMaxWindowEntry = INT32_MAX;

/// What is wrong with the size of a tensor; empty if nothing is.
std::string problemOfSize(llvm::ArrayRef<int64_t> shape);

/// Whether some window along one dimension covers nothing but padding. Of a
/// window whose elements are farther apart than the image is long, `kernel`
/// steps tell; of all others, the first and the last place.
bool hasEmptyWindow(int64_t image, int64_t low, int64_t outputs, int64_t kernel,
                    int64_t stride, int64_t dilation);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLIMITS_H
