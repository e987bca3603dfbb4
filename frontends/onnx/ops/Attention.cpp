//===- Attention.cpp - The Attention operator of opset 23 -----------------===//
//
// Maps onto nn.attention where the heads are equal and nothing is cached;
// other exporters spell attention out, which fusion recognises later.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace pipewright::frontend {

/// [B, T, H * D] as [B, H, T, D]; rank 4 stays.
static Value splitHeads(NodeContext &n, Value x, int64_t heads) {
  if (!x || shapeOf(x).size() == 4)
    return x;
  ArrayRef<int64_t> shape = shapeOf(x);
  x = n.b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return n.b.transpose(x, {0, 2, 1, 3});
}

static Value additiveMask(NodeContext &n, Value mask) {
  if (!mask || kindOf(mask) == ElementKind::Float)
    return mask;
  float low = -std::numeric_limits<float>::infinity();
  return n.b.create<nn::WhereOp>({mask, n.b.splat(0), n.b.splat(low)});
}

static LogicalResult importAttention(NodeContext &n) {
  bool causal = n.intAttribute("is_causal", 0);
  int64_t qHeads = n.intAttribute("q_num_heads", 0);
  int64_t kvHeads = n.intAttribute("kv_num_heads", 0);
  float scale = n.floatAttribute("scale", 0);
  float softcap = n.floatAttribute("softcap", 0);
  n.intAttribute("qk_matmul_output_mode", 0);
  n.intAttribute("softmax_precision", 0);
  if (failed(n.expectUnread(1)))
    return failure();
  if (n.hasInput(4) || n.hasInput(5))
    return n.error() << "past keys and values are not supported";
  if (softcap != 0)
    return n.error() << "softcap is not supported";
  bool flat = n.rank(0) == 3;
  for (unsigned i = 0; i < 3; ++i)
    if (n.rank(i) != (flat ? 3 : 4))
      return n.error() << "expects q, k and v of one rank, 3 or 4";
  if (flat && (qHeads < 1 || qHeads != kvHeads || n.shape(0)[2] % qHeads))
    return n.error() << "expects q_num_heads and kv_num_heads to be equal and "
                        "to divide the width";
  if (n.shape(0) != n.shape(1) || n.shape(0) != n.shape(2))
    return n.error() << "expects q, k and v of one shape";
  int64_t depth = flat ? n.shape(0)[2] / qHeads : n.shape(0)[3];
  if (scale == 0)
    scale = 1.0f / std::sqrt(float(depth));
  SmallVector<Value> operands;
  for (unsigned i = 0; i < 3; ++i)
    operands.push_back(splitHeads(n, n.value(i), qHeads));
  if (n.hasInput(3))
    operands.push_back(additiveMask(n, n.value(3)));
  SmallVector<NamedAttribute> attrs = {n.b.real("scale", scale),
                                       n.b.real("dropout_rate", 0),
                                       n.b.integer("dropout_id", 0)};
  if (causal)
    attrs.push_back(n.b.unit("causal"));
  Value result = n.b.create<nn::AttentionOp>(operands, attrs);
  if (flat && result)
    result = n.b.reshape(n.b.transpose(result, {0, 2, 1, 3}), n.shape(0));
  return n.setResult(0, result);
}

ArrayRef<OpRow> attentionOps() {
  static const OpRow rows[] = {
      {"Attention", 23, between(3, 6), importAttention},
  };
  return rows;
}

} // namespace pipewright::frontend
