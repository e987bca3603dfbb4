//===- FilterLayout.h - Filters in memory and in files ---------*- C++ -*-===//
//
// The arena holds filters as kernels like them, with the channels last; files
// (weights, checkpoints, gradients) have them as the model does.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_FILTERLAYOUT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_FILTERLAYOUT_H

#include "runtime/core/Program.h"

namespace pipewright::runtime {

/// The elements of a weight with `channelsLast`, reordered: [o, c, kh, kw] as
/// in files becomes [o, kh, kw, c] as in memory.
std::vector<char> filterForMemory(const TensorInfo &weight, const void *file);

/// And back.
std::vector<char> filterForFile(const TensorInfo &weight, const void *memory);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_FILTERLAYOUT_H
