//===- Linear.cpp - Matrix products and convolution -----------------------===//
//
// MatMul, Gemm and Conv as nn.matmul and nn.conv. Transposes of the last two
// dimensions become flags, so that a weight is read as it lies.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Volume.h"

using namespace mlir;

namespace pipewright::frontend {

/// The operand of a transpose that swaps just the last two dimensions.
static Value swappedOperand(Value x) {
  auto transpose = x ? x.getDefiningOp<nn::TransposeOp>() : nn::TransposeOp();
  if (!transpose)
    return Value();
  Shape expected = llvm::to_vector<4>(
      llvm::seq<int64_t>(0, transpose.getPermutation().size()));
  if (expected.size() < 2)
    return Value();
  std::swap(expected[expected.size() - 1], expected[expected.size() - 2]);
  return transpose.getPermutation() == ArrayRef<int64_t>(expected)
             ? Value(transpose.getX())
             : Value();
}

static Value matmul(NodeContext &n, Value a, Value b, bool transposeA,
                    bool transposeB) {
  if (Value source = swappedOperand(b)) {
    b = source;
    transposeB = !transposeB;
  }
  SmallVector<NamedAttribute> attrs;
  if (transposeA)
    attrs.push_back(n.b.unit("transpose_a"));
  if (transposeB)
    attrs.push_back(n.b.unit("transpose_b"));
  return n.b.create<nn::MatmulOp>({a, b}, attrs);
}

/// Repeats the batch dimensions of `x` up to `batch`.
static Value broadcastBatch(NodeContext &n, Value x, ArrayRef<int64_t> batch) {
  Shape shape(batch);
  llvm::append_range(shape, shapeOf(x).take_back(2));
  return n.b.broadcastTo(x, shape);
}

static LogicalResult importMatMul(NodeContext &n) {
  Value a = n.weight(0), b = n.weight(1);
  if (!a || !b)
    return failure();
  if (n.rank(0) == 0 || n.rank(1) == 0)
    return n.error() << "expects operands of rank 1 or more";
  // Vectors are matrices of one row or column, which the result then loses.
  bool rowVector = n.rank(0) == 1, columnVector = n.rank(1) == 1;
  if (rowVector)
    a = n.b.reshape(a, {1, n.shape(0)[0]});
  if (columnVector)
    b = n.b.reshape(b, {n.shape(1)[0], 1});
  ArrayRef<int64_t> batchA = shapeOf(a).drop_back(2),
                    batchB = shapeOf(b).drop_back(2);
  if (!batchB.empty() && batchA != batchB) {
    std::optional<Shape> batch = broadcastShape(batchA, batchB);
    if (!batch)
      return n.error() << "the batch dimensions do not broadcast";
    a = broadcastBatch(n, a, *batch);
    b = broadcastBatch(n, b, *batch);
  }
  Value result = matmul(n, a, b, false, false);
  if (!result)
    return failure();
  Shape shape(shapeOf(result));
  if (columnVector)
    shape.pop_back();
  if (rowVector)
    shape.erase(shape.end() - (columnVector ? 1 : 2));
  return n.setResult(0, n.b.reshape(result, shape));
}

/// A product of constants, such as frequencies by positions.
static LogicalResult foldMatMul(NodeContext &n) {
  ConstantTensor a = *n.constant(0), b = *n.constant(1);
  if (a.kind() != b.kind() || a.kind() == ElementKind::Bool)
    return n.error() << "expects operands of one type of numbers";
  if (a.rank() == 0 || b.rank() == 0)
    return n.error() << "expects operands of rank 1 or more";
  bool rowVector = a.rank() == 1, columnVector = b.rank() == 1;
  if (rowVector)
    a = a.reshaped({1, a.shape()[0]});
  if (columnVector)
    b = b.reshaped({b.shape()[0], 1});
  int64_t rows = a.shape()[a.rank() - 2], depth = a.shape().back(),
          columns = b.shape().back();
  std::optional<Shape> batch =
      broadcastShape(a.shape().drop_back(2), b.shape().drop_back(2));
  if (!batch || b.shape()[b.rank() - 2] != depth)
    return n.error() << "the operands do not fit together";
  auto spread = [&](const ConstantTensor &tensor) {
    Shape shape(*batch);
    llvm::append_range(shape, tensor.shape().take_back(2));
    return broadcastTensor(tensor, shape);
  };
  Shape shape(*batch);
  shape.append({rows, columns});
  // Each element of the result takes `depth` products.
  if (Shape work = shape;
      work.push_back(depth), failed(n.expectComputable(work)))
    return failure();
  a = spread(a);
  b = spread(b);
  ConstantTensor result(a.kind(), shape);
  for (int64_t i = 0, e = result.size(); i < e; ++i) {
    int64_t matrix = i / (rows * columns), row = i / columns % rows,
            column = i % columns;
    int64_t left = (matrix * rows + row) * depth,
            right = matrix * depth * columns + column;
    double real = 0;
    uint64_t whole = 0;
    for (int64_t k = 0; k < depth; ++k)
      if (a.kind() == ElementKind::Float)
        real += double(a.floatAt(left + k)) * b.floatAt(right + k * columns);
      else
        whole += uint64_t(a.intAt(left + k)) *
                 uint64_t(b.intAt(right + k * columns));
    if (a.kind() == ElementKind::Float)
      result.setFloat(i, float(real));
    else
      result.setInt(i, int64_t(whole));
  }
  if (columnVector)
    shape.pop_back();
  if (rowVector)
    shape.erase(shape.end() - (columnVector ? 1 : 2));
  return n.setResult(0, result.reshaped(shape));
}

static LogicalResult importGemm(NodeContext &n) {
  bool transposeA = n.intAttribute("transA", 0);
  bool transposeB = n.intAttribute("transB", 0);
  float alpha = n.floatAttribute("alpha", 1),
        beta = n.floatAttribute("beta", 1);
  if (n.rank(0) != 2 || n.rank(1) != 2)
    return n.error() << "expects matrices, but got ranks " << n.rank(0)
                     << " and " << n.rank(1);
  auto scaled = [&](Value x, float factor) {
    return factor == 1 ? x : n.b.create<nn::MulOp>({x, n.b.splat(factor)});
  };
  Value result = scaled(
      matmul(n, n.weight(0), n.weight(1), transposeA, transposeB), alpha);
  if (!result)
    return failure();
  if (n.hasInput(2) && beta != 0) {
    std::optional<Shape> shape = broadcastShape(shapeOf(result), n.shape(2));
    if (!shape || *shape != shapeOf(result))
      return n.error() << "input C does not broadcast to the product";
    result = n.b.create<nn::AddOp>({result, scaled(n.weight(2), beta)});
  }
  return n.setResult(0, result);
}

static LogicalResult importConv(NodeContext &n) {
  int64_t groups = n.intAttribute("group", 1);
  if (n.rank(1) != n.rank(0))
    return n.error() << "expects a filter of the input's rank " << n.rank(0)
                     << ", but got rank " << n.rank(1);
  FailureOr<Window> window = readWindow(
      n, Shape(n.shape(1).drop_front(std::min<int64_t>(2, n.rank(1)))));
  if (failed(window))
    return failure();
  if (failed(expectFewPlanes(n, *window)))
    return failure();
  bool isVolume = n.rank(0) == 5;
  Value image =
      isVolume ? stackPlanes(n, n.value(0), *window) : asImage(n, n.value(0));
  Value filter = asImage(n, n.weight(1));
  if (isVolume) {
    ArrayRef<int64_t> shape = n.shape(1);
    filter = n.b.reshape(filter,
                         {shape[0], shape[1] * shape[2], shape[3], shape[4]});
    window = planeOf(*window);
  }
  SmallVector<Value> operands = {image, filter};
  if (n.hasInput(2))
    operands.push_back(n.weight(2));
  Value result = n.b.create<nn::ConvOp>(
      operands,
      {n.b.ints("strides", window->strides), n.b.ints("pads", window->pads),
       n.b.ints("dilations", window->dilations),
       n.b.integer("groups", groups)});
  return n.setResult(0, isVolume ? volumeOf(n, result, n.shape(0)[0])
                                 : fromImage(n, result));
}

ArrayRef<OpRow> linearOps() {
  static const OpRow rows[] = {
      {"MatMul", 7, exactly(2), importMatMul, foldMatMul},
      {"Gemm", 7, between(2, 3), importGemm},
      {"Conv", 7, between(2, 3), importConv},
  };
  return rows;
}

} // namespace pipewright::frontend
