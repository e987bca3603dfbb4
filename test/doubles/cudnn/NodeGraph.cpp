//===- NodeGraph.cpp - Graphs of products, sums and functions -------------===//

#include "test/doubles/cudnn/NodeGraph.h"

#include <algorithm>
#include <iterator>
#include <set>

using namespace pipewright::doubles;

[[noreturn]] static void refuse(cudnnStatus_t status,
                                const std::string &message) {
  throw Refusal(status, message);
}

bool NodeGraph::isResult(int64_t id) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const GraphNode &node) { return node.result == id; });
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// How many operands a function has; none that the double does not know.
static size_t operandsOf(cudnnPointwiseMode_t function) {
  switch (function) {
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_GEN_INDEX:
    return 1;
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_CMP_GE:
  case CUDNN_POINTWISE_CMP_GT:
    return 2;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return 3;
  default:
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows no pointwise function " +
               std::to_string(function));
  }
}

/// The tensor that an attribute of a node names; entered into the graph.
static int64_t enter(NodeGraph &g, const Descriptor &node,
                     cudnnBackendAttributeName_t name) {
  const Tensor tensor = tensorOf(node.descriptor(name));
  const auto [at, isNew] = g.tensors.emplace(tensor.id, tensor);
  if (!isNew && !(at->second == tensor))
    refuse(CUDNN_STATUS_BAD_PARAM,
           "two different tensors have the id " + std::to_string(tensor.id));
  return tensor.id;
}

static void checkFloat(const Descriptor &operation,
                       cudnnBackendAttributeName_t name) {
  if (operation.one<cudnnDataType_t>(name, CUDNN_TYPE_DATA_TYPE) !=
      CUDNN_DATA_FLOAT)
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the double computes in f32 only");
}

/// Operands are as large as the result, or are stretched to it.
static void checkStretch(const Tensor &from, const Tensor &to) {
  for (size_t i = 0; i < 4; ++i)
    if (from.sizes[i] != to.sizes[i] && from.sizes[i] != 1)
      refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
             "tensor " + std::to_string(from.id) + " does not fit tensor " +
                 std::to_string(to.id));
}

static GraphNode pointwiseOf(NodeGraph &g, const Descriptor &node) {
  static constexpr cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  const Descriptor &function =
      node.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  GraphNode made{GraphNode::Kind::Pointwise, {}};
  made.function = function.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE,
                                                     CUDNN_TYPE_POINTWISE_MODE);
  made.result = enter(g, node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const Tensor &result = g.tensor(made.result);
  for (size_t i = 0; i < operandsOf(made.function); ++i) {
    made.operands.push_back(enter(g, node, names[i]));
    checkStretch(g.tensor(made.operands[i]), result);
  }
  const bool isIndex = made.function == CUDNN_POINTWISE_GEN_INDEX;
  const bool compares = made.function == CUDNN_POINTWISE_CMP_GE ||
                        made.function == CUDNN_POINTWISE_CMP_GT;
  if (isIndex)
    made.axis =
        function.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64);
  if (made.axis < 0 || made.axis > 3)
    refuse(CUDNN_STATUS_BAD_PARAM, "an index along no axis");
  if ((result.type == CUDNN_DATA_INT32) != isIndex ||
      (result.type == CUDNN_DATA_BOOLEAN) != compares)
    refuse(CUDNN_STATUS_BAD_PARAM,
           "the result of a pointwise function is of another type");
  if (made.function == CUDNN_POINTWISE_BINARY_SELECT &&
      g.tensor(made.operands[2]).type != CUDNN_DATA_BOOLEAN)
    refuse(CUDNN_STATUS_BAD_PARAM, "a choice by what is no truth value");
  return made;
}

static GraphNode productOf(NodeGraph &g, const Descriptor &node) {
  checkFloat(node.descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC),
             CUDNN_ATTR_MATMUL_COMP_TYPE);
  GraphNode made{GraphNode::Kind::Product,
                 {enter(g, node, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                  enter(g, node, CUDNN_ATTR_OPERATION_MATMUL_BDESC)}};
  made.result = enter(g, node, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  const Tensor &a = g.tensor(made.operands[0]);
  const Tensor &b = g.tensor(made.operands[1]);
  const Tensor &c = g.tensor(made.result);
  for (size_t i = 0; i < 2; ++i)
    if (a.sizes[i] != c.sizes[i] || b.sizes[i] != c.sizes[i])
      refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
             "batches of a product do not fit");
  if (a.sizes[2] != c.sizes[2] || b.sizes[3] != c.sizes[3] ||
      a.sizes[3] != b.sizes[2])
    refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "matrices of a product do not fit");
  return made;
}

static GraphNode reductionOf(NodeGraph &g, const Descriptor &node) {
  const Descriptor &operation =
      node.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  checkFloat(operation, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  GraphNode made{GraphNode::Kind::Reduction,
                 {enter(g, node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)}};
  made.result = enter(g, node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  made.reduction = operation.one<cudnnReduceTensorOp_t>(
      CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  if (made.reduction != CUDNN_REDUCE_TENSOR_ADD &&
      made.reduction != CUDNN_REDUCE_TENSOR_MAX)
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the double knows sums and maxima only");
  checkStretch(g.tensor(made.result), g.tensor(made.operands[0]));
  return made;
}

static GraphNode reshapeOf(NodeGraph &g, const Descriptor &node) {
  GraphNode made{GraphNode::Kind::Reshape,
                 {enter(g, node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)}};
  made.result = enter(g, node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  const Tensor &x = g.tensor(made.operands[0]), &y = g.tensor(made.result);
  if (x.elements() != y.elements() ||
      x.bytes() / x.elementBytes() != y.bytes() / y.elementBytes())
    refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "a reshape to another number of elements");
  return made;
}

static GraphNode nodeOf(NodeGraph &g, const Descriptor &node) {
  switch (node.type) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    return pointwiseOf(g, node);
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return productOf(g, node);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return reductionOf(g, node);
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    return reshapeOf(g, node);
  default:
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows no operation " + std::to_string(node.type));
  }
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// Puts each node behind those whose results it reads.
static std::vector<GraphNode> ordered(std::vector<GraphNode> waiting) {
  std::set<int64_t> missing;
  for (const GraphNode &node : waiting)
    if (!missing.insert(node.result).second)
      refuse(CUDNN_STATUS_BAD_PARAM,
             "two nodes write tensor " + std::to_string(node.result));
  std::vector<GraphNode> done;
  while (!waiting.empty()) {
    const auto ready =
        std::find_if(waiting.begin(), waiting.end(), [&](const GraphNode &n) {
          return std::none_of(
              n.operands.begin(), n.operands.end(),
              [&](int64_t operand) { return missing.count(operand) != 0; });
        });
    if (ready == waiting.end())
      refuse(CUDNN_STATUS_BAD_PARAM, "the nodes wait for each other");
    missing.erase(ready->result);
    done.push_back(std::move(*ready));
    waiting.erase(ready);
  }
  return done;
}

NodeGraph pipewright::doubles::nodeGraphOf(const Descriptor &graph) {
  NodeGraph g;
  std::vector<GraphNode> nodes;
  for (const auto &node :
       graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
    nodes.push_back(nodeOf(g, *node));
  g.nodes = ordered(std::move(nodes));
  for (const auto &[id, tensor] : g.tensors) {
    if (tensor.isVirtual && !g.isResult(id))
      refuse(CUDNN_STATUS_BAD_PARAM,
             "nothing writes virtual tensor " + std::to_string(id));
    if (!tensor.isVirtual && tensor.type != CUDNN_DATA_FLOAT &&
        tensor.type != CUDNN_DATA_BFLOAT16)
      refuse(CUDNN_STATUS_NOT_SUPPORTED,
             "tensor " + std::to_string(id) +
                 " in memory is of a type that "
                 "the double knows between nodes only");
    if (tensor.isByValue &&
        (tensor.isVirtual || g.isResult(id) || tensor.elements() != 1 ||
         tensor.type != CUDNN_DATA_FLOAT))
      refuse(CUDNN_STATUS_BAD_PARAM,
             "tensor " + std::to_string(id) + " cannot come by value");
  }
  return g;
}

int64_t pipewright::doubles::keptBytes(const NodeGraph &g) {
  int64_t bytes = 0;
  for (const GraphNode &node : g.nodes)
    if (node.kind == GraphNode::Kind::Reshape &&
        g.tensor(node.operands[0]).isVirtual)
      bytes = std::max(bytes, 2 * g.tensor(node.result).elements());
  return bytes;
}

bool pipewright::doubles::isKnownToEngines(const NodeGraph &g) {
  for (const GraphNode &node : g.nodes) {
    if (node.kind != GraphNode::Kind::Product)
      continue;
    for (const int64_t id : {node.operands[0], node.operands[1], node.result}) {
      const Tensor &t = g.tensor(id);
      if (t.isVirtual)
        continue;
      const size_t inner = t.strides[3] == 1 ? 3 : 2;
      if (t.type != CUDNN_DATA_BFLOAT16 || t.strides[inner] != 1 ||
          t.sizes[inner] % 8 != 0 || t.sizes[inner] > 256)
        return false;
    }
  }
  return true;
}
