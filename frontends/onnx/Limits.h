//===- Limits.h - What a model may ask for ---------------------*- C++ -*-===//
//
// Far above what models have, and far below what would exhaust the machine that
// compiles. README.md of this folder lists them for people.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_LIMITS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_LIMITS_H

#include <cstddef>
#include <cstdint>

namespace pipewright::frontend {

/// The oldest opset that is read.
inline constexpr int64_t kOldestOpset = 7;
/// The newest versions whose changes were looked at, one by one.
inline constexpr int64_t kCheckedOpset = 28, kCheckedIrVersion = 14;
/// Bytes of the name of an input, output, initializer or dimension, and of a
/// value between nodes.
inline constexpr size_t kMaxNameBytes = 1024;
/// How much of a node's name is kept. It may be longer in the file.
inline constexpr size_t kMaxLabelBytes = 256;
/// Bytes of a model; its external data may have more.
inline constexpr uint64_t kMaxModelBytes = INT32_MAX;
/// Brackets within brackets of a model in text form.
inline constexpr int kMaxNesting = 64;
/// Elements of a constant that is computed while compiling: 1 GiB of integers.
/// One value for all elements counts as one.
inline constexpr int64_t kMaxComputedElements = int64_t(1) << 27;
/// Elements of the matrix that interpolates one dimension: 4096 to 4096.
inline constexpr int64_t kMaxInterpolationElements = int64_t(1) << 24;
/// Indices and places of a tensor that are listed while compiling: 128 MiB.
inline constexpr int64_t kMaxListedPlaces = int64_t(1) << 24;
/// Subgraphs within subgraphs, and functions that call functions.
inline constexpr int kMaxSubgraphDepth = 16;
/// Iterations of Loop and Scan, each of which is imported; as many as the steps
/// of a recurrent layer.
inline constexpr int64_t kMaxIterations = 4096;
/// Nodes that functions and subgraphs become, all calls and iterations counted,
/// and the ops that those of subgraphs become.
inline constexpr int64_t kMaxInlinedNodes = int64_t(1) << 16;
inline constexpr int64_t kMaxInlinedOps = int64_t(1) << 18;
/// Bytes of the nodes that functions become, and elements of all constants that
/// nodes of subgraphs compute.
inline constexpr int64_t kMaxInlinedBytes = int64_t(1) << 28;
inline constexpr int64_t kMaxInlinedElements = int64_t(1) << 27;
/// Elements of a weight that the model makes instead of storing it.
inline constexpr int64_t kMaxMadeElements = int64_t(1) << 31;

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_LIMITS_H
