//===- AttentionGraph.cpp - Attention as cuDNN's graphs -------------------===//
//
// With S = scale q k^T:
//
//   forward   P = exp(S - max) / sum    lse = max + log(sum)    o = P v
//   backward  P = exp(S - lse)          dS = P (dO v^T - rowsum(dO o)) scale
//             dv = P^T dO    dk = dS^T q    dq = dS k
//
// What is rounded to bf16, and where k and v stand transposed, is as the
// engines want it.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/AttentionGraph.h"
#include "runtime/calls/AttentionStrides.h"

using namespace pipewright::runtime;

namespace {

class AttentionGraph : public CudnnGraph {
public:
  explicit AttentionGraph(const AttentionShape &shape)
      : s(shape), type(cudnnType(shape.type)), columns(keysOf(shape)),
        scoreSizes({s.batch, s.heads, s.rows, columns}),
        rowSizes({s.batch, s.heads, s.rows, 1}),
        vectorSizes({s.batch, s.heads, s.rows, s.depth}),
        keySizes({s.batch, s.heads, columns, s.depth}),
        scale(number(id(AttentionTensor::Scale))) {}

  void buildForward();
  void buildBackward();

private:
  static int64_t id(AttentionTensor tensor) {
    return static_cast<int64_t>(tensor);
  }

  static CudnnSizes listed(const AttentionStrides &strides) {
    return {strides.sample, strides.head, strides.row, 1};
  }

  /// One vector for each row: as q lies, or as o does.
  Value ofRows(AttentionTensor name) {
    return inMemory(id(name), type, vectorSizes, listed(rowStrides(s)));
  }
  Value ofOutputs(AttentionTensor name) {
    return inMemory(id(name), type, vectorSizes, listed(outputStrides(s)));
  }
  /// One for each column, as k and v lie.
  Value ofColumns(AttentionTensor name) {
    return inMemory(id(name), type, keySizes, listed(keyStrides(s)));
  }
  Value ofColumnsTransposed(AttentionTensor name) {
    return inMemory(id(name), type, transposed(keySizes),
                    transposed(listed(keyStrides(s))));
  }
  /// One number for each row.
  Value numberOfRows(AttentionTensor name) {
    return inMemory(id(name), CUDNN_DATA_FLOAT, rowSizes,
                    denseStrides(rowSizes));
  }

  Value scores(cudnnDataType_t of = CUDNN_DATA_FLOAT) {
    return between(of, scoreSizes);
  }
  Value rows() { return between(CUDNN_DATA_FLOAT, rowSizes); }

  Value scaled(Value x) {
    return pointwise(CUDNN_POINTWISE_MUL, {x, scale}, scores());
  }
  Value hideFuture(Value x);
  Value transposedScores(Value x);

  const AttentionShape &s;
  const cudnnDataType_t type;
  const int64_t columns;
  const CudnnSizes scoreSizes, rowSizes, vectorSizes, keySizes;
  const Value scale;
};

} // namespace

CudnnGraph::Value AttentionGraph::hideFuture(Value x) {
  if (!s.causal)
    return x;
  const Value row = index(x, 2), column = index(x, 3);
  const Value seen = pointwise(CUDNN_POINTWISE_CMP_GE, {row, column},
                               scores(CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  return pointwise(CUDNN_POINTWISE_BINARY_SELECT,
                   {x, number(id(AttentionTensor::Hidden)), seen}, scores());
}

/// The same elements, [column][row], as operands of a product.
CudnnGraph::Value AttentionGraph::transposedScores(Value x) {
  return reshape(x, between(type, transposed(scoreSizes),
                            transposed(denseStrides(scoreSizes))));
}

void AttentionGraph::buildForward() {
  const Value q = ofRows(AttentionTensor::Q);
  const Value k = ofColumnsTransposed(AttentionTensor::K);
  const Value visible = hideFuture(scaled(matmul(q, k, scores())));
  const Value largest = reduce(CUDNN_REDUCE_TENSOR_MAX, visible, rows());
  const Value powers = pointwise(
      CUDNN_POINTWISE_EXP,
      {pointwise(CUDNN_POINTWISE_SUB, {visible, largest}, scores())}, scores());
  const Value sum = reduce(CUDNN_REDUCE_TENSOR_ADD, powers, rows());
  pointwise(CUDNN_POINTWISE_ADD,
            {largest, pointwise(CUDNN_POINTWISE_LOG, {sum}, rows())},
            numberOfRows(AttentionTensor::Lse));
  matmul(pointwise(CUDNN_POINTWISE_DIV, {powers, sum}, scores(type)),
         ofColumns(AttentionTensor::V), ofOutputs(AttentionTensor::O));
}

void AttentionGraph::buildBackward() {
  const Value q = ofRows(AttentionTensor::Q);
  const Value dO = ofOutputs(AttentionTensor::OutputGradient);
  const Value k = ofColumnsTransposed(AttentionTensor::K);

  const Value products =
      pointwise(CUDNN_POINTWISE_MUL, {dO, ofOutputs(AttentionTensor::O)},
                between(CUDNN_DATA_FLOAT, vectorSizes));
  // Where dropout would scale: engines want the node.
  const Value means =
      pointwise(CUDNN_POINTWISE_MUL,
                {reduce(CUDNN_REDUCE_TENSOR_ADD, products, rows()),
                 number(id(AttentionTensor::One))},
                numberOfRows(AttentionTensor::Means));

  const Value shifted = pointwise(
      CUDNN_POINTWISE_SUB,
      {scaled(matmul(q, k, scores())), numberOfRows(AttentionTensor::Lse)},
      scores());
  const Value probabilities =
      pointwise(CUDNN_POINTWISE_EXP, {hideFuture(shifted)}, scores());
  matmul(transposedScores(probabilities), dO,
         ofColumns(AttentionTensor::VGradient));

  const Value v = ofColumnsTransposed(AttentionTensor::V);
  const Value centered = pointwise(CUDNN_POINTWISE_SUB,
                                   {matmul(dO, v, scores()), means}, scores());
  const Value dS = pointwise(
      CUDNN_POINTWISE_MUL,
      {pointwise(CUDNN_POINTWISE_MUL, {centered, probabilities}, scores()),
       scale},
      scores());
  matmul(transposedScores(dS), q, ofColumns(AttentionTensor::KGradient));

  matmul(dS, reshape(k, between(type, keySizes, listed(keyStrides(s)))),
         ofRows(AttentionTensor::QGradient));
}

CudnnDescriptor
pipewright::runtime::attentionForwardGraph(const CudnnTarget &target,
                                           const AttentionShape &shape) {
  AttentionGraph graph(shape);
  graph.buildForward();
  return graph.finish(target);
}

CudnnDescriptor
pipewright::runtime::attentionBackwardGraph(const CudnnTarget &target,
                                            const AttentionShape &shape) {
  AttentionGraph graph(shape);
  graph.buildBackward();
  return graph.finish(target);
}
