//===- BuiltinParameters.h - Parameters of the builtin kernels -*- C++ -*-===//
//
// What host code hands to the kernels of Builtin.cu by value. Compiled for
// both sides, so it needs nothing but fixed-width integers.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINPARAMETERS_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINPARAMETERS_H

#include <stdint.h>

namespace pipewright::runtime {

/// Values that travel with the launch itself.
struct ValueChunk {
  static constexpr int words = 256;
  uint32_t at[words];
};

/// Where members of a collective have the same part of their ranges.
struct MemberRanges {
  static constexpr int most = 16;
  uint64_t at[most];
  int32_t count;
};

/// How many values a block of `sum_squares` adds the squares of.
constexpr int64_t squaresChunk = 1 << 16;

/// One dropout of one micro-batch. The kernel adds seed and step.
struct DropoutParameters {
  uint32_t id;
  uint32_t microBatch;
  /// A random word below this drops the element, another multiplies by `kept`.
  uint32_t threshold;
  float kept;
};

/// An index that its table has not. Zeros: none was found.
struct IndexFault {
  enum Kind : int32_t { None, Row, Label };
  int32_t kind;
  int64_t index;
  /// Rows, or classes.
  int64_t size;
};

/// What a GPU has of the running step. The host writes all of it as a step
/// begins, and reads the fault when it has ended.
struct StepState {
  uint64_t seed, step;
  IndexFault fault;
};

/// Sizes of pooling, as in PoolingShape. The channels of an image are
/// neighbours in memory; with channels first each plane is an image of one.
struct PoolingParameters {
  int32_t h, w, oh, ow;
  int32_t kh, kw;
  int32_t strideH, strideW;
  int32_t padTop, padLeft;
  int32_t dilationH, dilationW;
  int32_t countIncludePad;
  int32_t channels;
  int32_t blocksPerImage;
};

/// Elements between neighbours of a tensor of vectors.
struct VectorStrides {
  int64_t batch, head;
  int32_t row;
};

/// Sizes of attention, as in AttentionShape.
struct AttentionParameters {
  int32_t batch, heads, rows, columns, depth;
  /// Heads of q that read each head of k and v.
  int32_t group;
  /// Tiles that the kernel's own dimension (rows or columns) has.
  int32_t tiles;
  int32_t causal;
  float scale;
  /// What bounds products q . k, before they are scaled, and 1 / that; both 0
  /// where nothing does.
  float bound, inverseBound;
  /// The strides of q, of k and v, and of o. Gradients have those of what they
  /// belong to.
  VectorStrides rowsAt, columnsAt, outputsAt;
  /// Elements between neighbours of the additive mask; 0 where it is
  /// stretched. Without a mask its pointer is null.
  int64_t maskBatch, maskHead, maskRow, maskColumn;
  /// The mask's samples; sample b has that of b % maskSamples.
  int32_t maskSamples;
  /// Without dropout, threshold is 0 and kept 1.
  DropoutParameters dropout;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINPARAMETERS_H
