//===- LibraryCalls.cpp - nn library ops as calls of the runtime ----------===//
//
// One runtime call for each op that carries LibraryOpInterface, with its shape
// spelt out, so that a reader of the generated code sees sizes.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/StageFunctions.h"

#include "dialects/nn/NNInference.h"
#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// Of a product with or without an epilogue; `y` is its result.
template <class MatmulOp>
static ShapeText matmulShape(MatmulOp op, Value y, bool accumulates) {
  ArrayRef<int64_t> a = shapeOf(op.getA()), b = shapeOf(op.getB());
  int64_t m = a[a.size() - (op.getTransposeA() ? 1 : 2)];
  int64_t k = a[a.size() - (op.getTransposeA() ? 2 : 1)];
  int64_t n = b[b.size() - (op.getTransposeB() ? 2 : 1)];
  int64_t batch = product(a.drop_back(2));
  bool broadcast = b.size() == 2;
  // Rows of all matrices of a batch are rows of one matrix.
  if (broadcast && !op.getTransposeA()) {
    m *= batch;
    batch = 1;
  }
  ShapeText text;
  text.field("batch", batch, 1).field("m", m).field("n", n).field("k", k);
  text.field("transposeA", op.getTransposeA())
      .field("transposeB", op.getTransposeB())
      .field("broadcastB", broadcast && batch > 1);
  return text.field("beta", accumulates ? 1.0f : 0.0f, 0.0f)
      .field("type", elementOf(op.getA()))
      .field("result", elementOf(y));
}

/// The shape of an image or filters with the channel at the second place.
template <class ImageOp>
static SmallVector<int64_t> imageShape(ImageOp op, Value value) {
  return llvm::to_vector(
      nn::channelsFirst(cast<RankedTensorType>(value.getType()),
                        op.getChannelsLast())
          .getShape());
}

/// The shape of a convolution, as all of its directions share it.
template <class ConvOp>
static ShapeText convolutionShape(ConvOp op, Value images, Value filters,
                                  bool hasWeight) {
  SmallVector<int64_t> x = imageShape(op, images), w = imageShape(op, filters);
  auto strides = op.getStrides(), pads = op.getPads();
  auto dilations = op.getDilations();
  ShapeText text;
  text.field("n", x[0]).field("c", x[1]).field("h", x[2]).field("w", x[3]);
  text.field("o", w[0]).field("kh", w[2]).field("kw", w[3]);
  text.field("strideH", strides[0], 1).field("strideW", strides[1], 1);
  text.field("padTop", pads[0]).field("padLeft", pads[1]);
  text.field("padBottom", pads[2]).field("padRight", pads[3]);
  text.field("dilationH", dilations[0], 1).field("dilationW", dilations[1], 1);
  text.field("groups", static_cast<int64_t>(op.getGroups()), 1);
  return text.field("keepPackedWeight", hasWeight)
      .field("channelsLast", op.getChannelsLast())
      .field("type", elementOf(op->getOperand(0)));
}

template <class PoolOp>
static ShapeText poolShape(PoolOp op, Value images, Value pooled) {
  SmallVector<int64_t> x = imageShape(op, images), y = imageShape(op, pooled);
  auto kernel = op.getKernel(), strides = op.getStrides(), pads = op.getPads();
  ShapeText text;
  text.field("n", x[0]).field("c", x[1]).field("h", x[2]).field("w", x[3]);
  text.field("oh", y[2]).field("ow", y[3]);
  text.field("kh", kernel[0], 1).field("kw", kernel[1], 1);
  text.field("strideH", strides[0], 1).field("strideW", strides[1], 1);
  text.field("padTop", pads[0]).field("padLeft", pads[1]);
  return text.field("padBottom", pads[2]).field("padRight", pads[3]);
}

/// `inputStride` and `outputStride` as in the runtime; `sizes` are [B, H, T,
/// D].
template <class AttentionOp>
static ShapeText attentionShape(AttentionOp op, ArrayRef<int64_t> sizes,
                                int64_t inputStride, int64_t outputStride,
                                Type element) {
  ShapeText text;
  text.field("batch", sizes[0]).field("heads", sizes[1]);
  text.field("rows", sizes[2]).field("depth", sizes[3]);
  text.field("scale", op.getScale().convertToFloat(), 1.0f);
  text.field("causal", op.getCausal());
  float rate = op.getDropoutRate().convertToFloat();
  text.field("dropoutRate", rate, 0.0f);
  if (rate != 0)
    text.field("dropoutId", static_cast<int64_t>(op.getDropoutId()));
  if (Value mask = op.getMask()) {
    SmallVector<int64_t> sizes(4, 1);
    ArrayRef<int64_t> shape = shapeOf(mask);
    llvm::copy(shape, sizes.end() - shape.size());
    text.field("maskBatch", sizes[0], 1).field("maskHeads", sizes[1], 1);
    text.field("maskRows", sizes[2], 1).field("maskColumns", sizes[3], 1);
  }
  return text.field("type", element)
      .field("inputStride", inputStride, 0)
      .field("outputStride", outputStride, 0);
}

/// Of a forward or backward op with q, k and v.
template <class AttentionOp>
static ShapeText attentionShape(AttentionOp op) {
  SmallVector<int64_t> sizes(shapeOf(op.getQ()));
  int64_t stride = 0;
  if (op.getRowsFirst()) {
    std::swap(sizes[1], sizes[2]);
    stride = sizes[1] * sizes[3];
  }
  return attentionShape(op, sizes, stride, stride, elementOf(op.getQ()));
}

template <class PackedAttentionOp>
static ShapeText packedAttentionShape(PackedAttentionOp op) {
  ArrayRef<int64_t> qkv = shapeOf(op.getQkv());
  int64_t sizes[] = {qkv[0], qkv[3], qkv[1], qkv[4]};
  int64_t row = qkv[3] * qkv[4];
  return attentionShape(op, sizes, 3 * row, row, elementOf(op.getQkv()));
}

/// The weight behind a value, empty where it is none.
static StringRef weightOf(Value value) {
  if (auto parameter =
          behindViews(value).template getDefiningOp<nn::ParameterOp>())
    return parameter.getWeight();
  return {};
}

/// The weight whose gradient a product is added to in place.
static StringRef weightOfGradient(Value product) {
  if (nn::AccumulateGradientOp sum = pipe::addedInPlace(product))
    return sum.getWeight();
  return {};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult BodyWriter::writeConvolution(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::ConvOp conv) -> LogicalResult {
        StringRef weight = weightOf(conv.getW());
        std::string shape =
            convolutionShape(conv, conv.getX(), conv.getW(), !weight.empty())
                .str();
        int64_t number = preparations.convolution(shape, weight);
        bool hasBias = conv.getBias() != nullptr;
        // Primitives with and without a bias differ; never seen in one model.
        auto &prepared = preparations[number].forwardHasBias;
        if (prepared && *prepared != hasBias)
          return op->emitOpError("shares its weight with a convolution of the "
                                 "same shape, but only one has a bias");
        prepared = hasBias;
        Value x = bufferOf(conv.getX()), w = bufferOf(conv.getW());
        CallArgument bias = FunctionWriter::absent();
        if (hasBias)
          bias = bufferOf(conv.getBias());
        Value y = bufferOf(conv.getResult());
        if (!x || !w || !y || (hasBias && !std::get<Value>(bias)))
          return failure();
        writer.convolutionForward(number, x, w, bias, y);
        return success();
      })
      .Case([&](nn::ConvBackwardDataOp conv) -> LogicalResult {
        StringRef weight = weightOf(conv.getW());
        std::string shape = convolutionShape(conv, conv.getResult(),
                                             conv.getW(), !weight.empty())
                                .str();
        int64_t number = preparations.convolution(shape, weight);
        preparations[number].backwardData = true;
        Value dy = bufferOf(conv.getDy()), w = bufferOf(conv.getW());
        Value dx = bufferOf(conv.getResult());
        if (!dy || !w || !dx)
          return failure();
        writer.convolutionBackwardData(number, dy, w, dx);
        return success();
      })
      .Case([&](nn::ConvBackwardWeightOp conv) -> LogicalResult {
        StringRef weight = weightOfGradient(conv.getResult());
        std::string shape = convolutionShape(conv, conv.getX(),
                                             conv.getResult(), !weight.empty())
                                .str();
        int64_t number = preparations.convolution(shape, weight);
        preparations[number].backwardWeight = true;
        bool accumulates;
        Value dw = destinationOf(conv.getResult(), accumulates);
        Value dy = bufferOf(conv.getDy()), x = bufferOf(conv.getX());
        if (!dy || !x || !dw)
          return failure();
        writer.convolutionBackwardWeight(number, dy, x, dw, accumulates);
        return success();
      })
      .Default([](Operation *) { return failure(); });
}

LogicalResult BodyWriter::writePooling(Operation *op) {
  SmallVector<Value> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(bufferOf(operand));
  for (Value result : op->getResults())
    results.push_back(bufferOf(result));
  if (llvm::is_contained(operands, Value()) ||
      llvm::is_contained(results, Value()))
    return failure();
  auto dilated = [](auto pool, ShapeText text) {
    auto dilations = pool.getDilations();
    return text.field("dilationH", dilations[0], 1)
        .field("dilationW", dilations[1], 1)
        .field("channelsLast", pool.getChannelsLast())
        .field("type", elementOf(pool->getOperand(0)));
  };
  auto average = [](auto pool, ShapeText text) {
    return text.field("countIncludePad", pool.getCountIncludePad())
        .field("channelsLast", pool.getChannelsLast())
        .field("type", elementOf(pool->getOperand(0)));
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](nn::MaxPoolOp pool) {
        ShapeText shape = poolShape(pool, pool.getX(), pool.getY());
        writer.maxPool(dilated(pool, shape), operands[0], results[0],
                       results[1]);
      })
      .Case([&](nn::MaxPoolBackwardOp pool) {
        ShapeText shape = poolShape(pool, pool.getResult(), pool.getDy());
        writer.maxPoolBackward(dilated(pool, shape), operands[0], operands[1],
                               results[0]);
      })
      .Case([&](nn::AveragePoolOp pool) {
        ShapeText shape = poolShape(pool, pool.getX(), pool.getResult());
        writer.averagePool(average(pool, shape), operands[0], results[0]);
      })
      .Case([&](nn::AveragePoolBackwardOp pool) {
        ShapeText shape = poolShape(pool, pool.getResult(), pool.getDy());
        writer.averagePoolBackward(average(pool, shape), operands[0],
                                   results[0]);
      });
  return success();
}

/// As the runtime's functions take buffers; null where there is no mask.
static SmallVector<Value> attentionBuffers(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case([](nn::AttentionOp a) -> SmallVector<Value> {
        return {a.getQ(),    a.getK(), a.getV(),
                a.getMask(), a.getO(), a.getStats()};
      })
      .Case([](nn::AttentionBackwardOp a) -> SmallVector<Value> {
        return {a.getGrad(),  a.getQ(),    a.getK(),  a.getV(),  a.getO(),
                a.getStats(), a.getMask(), a.getDq(), a.getDk(), a.getDv()};
      })
      .Case([](nn::PackedAttentionOp a) -> SmallVector<Value> {
        return {a.getQkv(), a.getMask(), a.getO(), a.getStats()};
      })
      .Case([](nn::PackedAttentionBackwardOp a) -> SmallVector<Value> {
        return {a.getGrad(),  a.getQkv(),  a.getO(),
                a.getStats(), a.getMask(), a.getDqkv()};
      });
}

/// What writes its call, and the shape that it gets.
using AttentionWriter = void (FunctionWriter::*)(const ShapeText &,
                                                 ArrayRef<CallArgument>);
static std::pair<AttentionWriter, ShapeText> attentionCall(Operation *op) {
  using Call = std::pair<AttentionWriter, ShapeText>;
  return llvm::TypeSwitch<Operation *, Call>(op)
      .Case([](nn::AttentionOp a) {
        return Call(&FunctionWriter::attention, attentionShape(a));
      })
      .Case([](nn::AttentionBackwardOp a) {
        return Call(&FunctionWriter::attentionBackward, attentionShape(a));
      })
      .Case([](nn::PackedAttentionOp a) {
        return Call(&FunctionWriter::packedAttention, packedAttentionShape(a));
      })
      .Case([](nn::PackedAttentionBackwardOp a) {
        return Call(&FunctionWriter::packedAttentionBackward,
                    packedAttentionShape(a));
      });
}

static bool isStrided(Operation *op) {
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return attention.getRowsFirst();
  if (auto attention = dyn_cast<nn::AttentionBackwardOp>(op))
    return attention.getRowsFirst();
  return true;
}

LogicalResult BodyWriter::writeAttention(Operation *op) {
  if (isStrided(op) && !layout.target->hostStyle().hasStridedAttention)
    return op->emitOpError("has no place in ")
           << layout.target->noun()
           << "'s program; expects a module without nn-pack-attention";
  SmallVector<CallArgument> buffers;
  for (Value value : attentionBuffers(op)) {
    buffers.push_back(FunctionWriter::absent());
    if (!value)
      continue;
    Value buffer = bufferOf(value);
    if (!buffer)
      return failure();
    buffers.back() = buffer;
  }
  auto [write, shape] = attentionCall(op);
  preparations.attention(shape.str());
  (writer.*write)(shape, buffers);
  return success();
}

static StringRef runtimeEpilogue(nn::MatmulEpilogue epilogue) {
  switch (epilogue) {
  case nn::MatmulEpilogue::Bias:
    return "Bias";
  case nn::MatmulEpilogue::BiasGelu:
    return "BiasGelu";
  case nn::MatmulEpilogue::GeluGradient:
    return "GeluGradient";
  case nn::MatmulEpilogue::GeluBiasGradient:
    return "GeluBiasGradient";
  }
  llvm_unreachable("all epilogues are listed");
}

LogicalResult BodyWriter::writeMatmulEpilogue(nn::MatmulEpilogueOp op) {
  if (!layout.target->hostStyle().hasEpilogues)
    return op.emitOpError("has no place in ")
           << layout.target->noun()
           << "'s program; expects a module without nn-fuse-epilogues";
  // The runtime has one bias and one pre-activation, be they read or written.
  bool writesActivation = op.getEpilogue() == nn::MatmulEpilogue::BiasGelu;
  Value bias = op.getBias(), activation = op.getPreActivation();
  if (Value beside = op.getBeside())
    (writesActivation ? activation : bias) = beside;
  SmallVector<CallArgument> buffers;
  for (Value value : {Value(op.getA()), Value(op.getB()), Value(op.getY()),
                      bias, activation}) {
    buffers.push_back(FunctionWriter::absent());
    if (!value)
      continue;
    Value buffer = bufferOf(value);
    if (!buffer)
      return failure();
    buffers.back() = buffer;
  }
  std::string shape = matmulShape(op, op.getY(), /*accumulates=*/false).str();
  StringRef epilogue = runtimeEpilogue(op.getEpilogue());
  preparations.matmul(FunctionWriter::epilogueArguments(shape, epilogue),
                      /*isLowered=*/false);
  writer.matmul(shape, epilogue, buffers);
  return success();
}

LogicalResult BodyWriter::writeLibraryCall(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::MatmulOp matmul) -> LogicalResult {
        bool accumulates;
        Value a = bufferOf(matmul.getA()), b = bufferOf(matmul.getB());
        Value y = destinationOf(matmul.getResult(), accumulates);
        if (!a || !b || !y)
          return failure();
        ShapeText shape = matmulShape(matmul, matmul.getResult(), accumulates);
        preparations.matmul(shape.str(), elementOf(matmul.getA()).isBF16());
        writer.matmul(shape, a, b, y);
        return success();
      })
      .Case([&](nn::MatmulEpilogueOp matmul) {
        return writeMatmulEpilogue(matmul);
      })
      .Case<nn::ConvOp, nn::ConvBackwardDataOp, nn::ConvBackwardWeightOp>(
          [&](Operation *conv) { return writeConvolution(conv); })
      .Case<nn::MaxPoolOp, nn::MaxPoolBackwardOp, nn::AveragePoolOp,
            nn::AveragePoolBackwardOp>(
          [&](Operation *pool) { return writePooling(pool); })
      .Case<nn::AttentionOp, nn::AttentionBackwardOp, nn::PackedAttentionOp,
            nn::PackedAttentionBackwardOp>(
          [&](Operation *attention) { return writeAttention(attention); })
      .Case([&](nn::DropoutOp dropout) -> LogicalResult {
        Value x = bufferOf(dropout.getX()), y = bufferOf(dropout.getResult());
        if (!x || !y)
          return failure();
        ShapeText shape;
        shape.field("elements", product(shapeOf(dropout.getX())));
        shape.field("rate", dropout.getRate().convertToFloat(), 0.0f);
        shape.field("id", static_cast<int64_t>(dropout.getId()));
        shape.field("type", elementOf(dropout.getX()));
        writer.dropout(shape, x, y);
        return success();
      })
      .Case([&](nn::EmbeddingOp embedding) -> LogicalResult {
        Value table = bufferOf(embedding.getTable());
        Value indices = bufferOf(embedding.getIndices());
        Value y = bufferOf(embedding.getResult());
        if (!table || !indices || !y)
          return failure();
        ArrayRef<int64_t> sizes = shapeOf(embedding.getTable());
        ShapeText shape;
        shape.field("rows", sizes[0]).field("width", sizes[1]);
        shape.field("count", product(shapeOf(embedding.getIndices())));
        shape.field("type", elementOf(embedding.getTable()));
        writer.embedding(shape, table, indices, y);
        return success();
      })
      .Case([&](nn::EmbeddingBackwardOp embedding) -> LogicalResult {
        bool accumulates;
        Value dy = bufferOf(embedding.getDy());
        Value indices = bufferOf(embedding.getIndices());
        Value dtable = destinationOf(embedding.getResult(), accumulates);
        if (!dy || !indices || !dtable)
          return failure();
        ArrayRef<int64_t> sizes = shapeOf(embedding.getResult());
        ShapeText shape;
        shape.field("rows", sizes[0]).field("width", sizes[1]);
        shape.field("count", product(shapeOf(embedding.getIndices())));
        shape.field("type", elementOf(embedding.getDy()));
        preparations.embeddingBackward(shape.str());
        writer.embeddingBackward(shape, dy, indices, dtable, accumulates);
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("is a library op without a runtime call");
      });
}

} // namespace pipewright::codegen
