//===- Attention.cu - Attention for GPUs and types without a library ------===//
//
// An image of its own: the driver takes seconds to compile it, and only
// programs that have attention load it.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/builtin/Attention.cuh"
