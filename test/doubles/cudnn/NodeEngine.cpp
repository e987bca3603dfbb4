//===- NodeEngine.cpp - Computes graphs node by node ----------------------===//
//
// In f32; what a tensor between two nodes is declared to be in bf16 is rounded
// there.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cudnn/Elements.h"
#include "test/doubles/cudnn/NodeGraph.h"

#include <cmath>
#include <limits>
#include <unordered_map>

using namespace pipewright::doubles;

using Values = std::vector<float>;

namespace {

/// What has been computed so far, by tensor.
class Evaluation {
public:
  Evaluation(const NodeGraph &graph, bool backwards,
             const std::map<int64_t, void *> &addresses)
      : g(graph), backwards(backwards), addresses(addresses) {}

  void run();

private:
  const Values &values(int64_t id);
  Values pointwise(const GraphNode &node);
  Values product(const GraphNode &node);
  Values reduction(const GraphNode &node);
  Values reshape(const GraphNode &node);
  void keep(const Tensor &tensor, Values result);

  const NodeGraph &g;
  const bool backwards;
  const std::map<int64_t, void *> &addresses;
  std::unordered_map<int64_t, Values> known;
};

} // namespace

/// Calls body(place of the element, place in `part` of what goes with it),
/// where dimensions that `part` has one of are stretched.
template <class Body>
static void forStretched(const Tensor &whole, const Tensor &part,
                         const Body &body) {
  int64_t strides[4], next = 1;
  for (int i = 3; i >= 0; --i) {
    strides[i] = part.sizes[i] == 1 ? 0 : next;
    next *= part.sizes[i];
  }
  int64_t dense = 0;
  for (int64_t a = 0; a < whole.sizes[0]; ++a)
    for (int64_t b = 0; b < whole.sizes[1]; ++b)
      for (int64_t c = 0; c < whole.sizes[2]; ++c)
        for (int64_t d = 0; d < whole.sizes[3]; ++d)
          body(dense++, a * strides[0] + b * strides[1] + c * strides[2] +
                            d * strides[3]);
}

static float apply(cudnnPointwiseMode_t function, float x, float b, float t) {
  switch (function) {
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_GT:
    return x > b;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  default:
    return x;
  }
}

const Values &Evaluation::values(int64_t id) {
  const auto found = known.find(id);
  if (found != known.end())
    return found->second;
  return known[id] = load(g.tensor(id), addresses.at(id), /*rounds=*/false);
}

Values Evaluation::pointwise(const GraphNode &node) {
  const Tensor &to = g.tensor(node.result);
  Values result(to.elements());
  if (node.function == CUDNN_POINTWISE_GEN_INDEX) {
    int64_t below = 1;
    for (size_t i = node.axis + 1; i < 4; ++i)
      below *= to.sizes[i];
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = static_cast<float>(i / below % to.sizes[node.axis]);
    return result;
  }
  Values stretched[3];
  for (size_t i = 0; i < 3; ++i) {
    stretched[i].resize(result.size());
    if (i >= node.operands.size())
      continue;
    const Values &from = values(node.operands[i]);
    forStretched(to, g.tensor(node.operands[i]), [&](int64_t at, int64_t part) {
      stretched[i][at] = from[part];
    });
  }
  for (size_t i = 0; i < result.size(); ++i)
    result[i] =
        apply(node.function, stretched[0][i], stretched[1][i], stretched[2][i]);
  return result;
}

Values Evaluation::product(const GraphNode &node) {
  const Tensor &to = g.tensor(node.result);
  const Values &a = values(node.operands[0]), &b = values(node.operands[1]);
  const int64_t rows = to.sizes[2], columns = to.sizes[3];
  const int64_t depth = g.tensor(node.operands[0]).sizes[3];
  Values result(to.elements());
  for (int64_t matrix = 0; matrix < to.sizes[0] * to.sizes[1]; ++matrix)
    for (int64_t r = 0; r < rows; ++r) {
      float *out = &result[(matrix * rows + r) * columns];
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t k = backwards ? depth - 1 - i : i;
        const float weight = a[(matrix * rows + r) * depth + k];
        const float *row = &b[(matrix * depth + k) * columns];
        for (int64_t c = 0; c < columns; ++c)
          out[c] += weight * row[c];
      }
    }
  return result;
}

Values Evaluation::reduction(const GraphNode &node) {
  const Tensor &from = g.tensor(node.operands[0]), &to = g.tensor(node.result);
  const Values &x = values(node.operands[0]);
  const bool isSum = node.reduction == CUDNN_REDUCE_TENSOR_ADD;
  Values result(to.elements(),
                isSum ? 0 : -std::numeric_limits<float>::infinity());
  forStretched(from, to, [&](int64_t at, int64_t part) {
    result[part] = isSum ? result[part] + x[at] : std::max(result[part], x[at]);
  });
  return result;
}

/// As if x lay in memory, read by the strides of the result.
Values Evaluation::reshape(const GraphNode &node) {
  const Tensor &from = g.tensor(node.operands[0]), &to = g.tensor(node.result);
  const Values &x = values(node.operands[0]);
  Values memory(from.bytes() / from.elementBytes());
  forElements(from, [&](int64_t dense, int64_t at) { memory[at] = x[dense]; });
  Values result(to.elements());
  forElements(to,
              [&](int64_t dense, int64_t at) { result[dense] = memory[at]; });
  return result;
}

void Evaluation::keep(const Tensor &tensor, Values result) {
  if (tensor.type == CUDNN_DATA_BFLOAT16)
    for (float &value : result)
      value = fromBFloat16(toBFloat16(value));
  if (!tensor.isVirtual)
    store(tensor, result, /*beta=*/0, addresses.at(tensor.id));
  known[tensor.id] = std::move(result);
}

void Evaluation::run() {
  for (const GraphNode &node : g.nodes) {
    Values result;
    switch (node.kind) {
    case GraphNode::Kind::Pointwise:
      result = pointwise(node);
      break;
    case GraphNode::Kind::Product:
      result = product(node);
      break;
    case GraphNode::Kind::Reduction:
      result = reduction(node);
      break;
    case GraphNode::Kind::Reshape:
      result = reshape(node);
      break;
    }
    keep(g.tensor(node.result), std::move(result));
  }
}

void pipewright::doubles::computeNodes(
    const NodeGraph &graph, bool backwards,
    const std::map<int64_t, void *> &addresses) {
  Evaluation(graph, backwards, addresses).run();
}
