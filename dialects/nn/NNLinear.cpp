//===- NNLinear.cpp - Matrix products and convolutions --------------------===//
//
// Inference, cost and gradients of the ops where the arithmetic is.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLinear.h"
#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWindows.h"
#include "runtime/calls/Convolution.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> pipewright::nn::inferProduct(InferenceSite site,
                                                             RankedTensorType a,
                                                             RankedTensorType b,
                                                             bool transposeA,
                                                             bool transposeB) {
  // (C1)
  if (a.getRank() < 2 || b.getRank() < 2)
    return site.error("expects operands of rank 2 or more, but got ", a,
                      " and ", b);
  // (C2)
  if (b.getRank() != 2 &&
      a.getShape().drop_back(2) != b.getShape().drop_back(2))
    return site.error("expects the right operand to have rank 2 or the batch "
                      "dimensions of the left, but got ",
                      a, " and ", b);
  auto [m, k] = std::pair(a.getShape().end()[-2], a.getShape().end()[-1]);
  if (transposeA)
    std::swap(m, k);
  auto [k2, n] = std::pair(b.getShape().end()[-2], b.getShape().end()[-1]);
  if (transposeB)
    std::swap(k2, n);
  // (C3)
  if (k != k2)
    return site.error("expects equal contracted dimensions, but got ", k,
                      " in ", a, " and ", k2, " in ", b);
  // (C4)
  if (a.getElementType() != b.getElementType())
    return site.error("expects operands of one element type, but got ", a,
                      " and ", b);
  SmallVector<int64_t> shape(a.getShape());
  shape.end()[-2] = m;
  shape.end()[-1] = n;
  return shape;
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType a = tensorOf(adaptor.getA());
  FailureOr<SmallVector<int64_t>> shape =
      inferProduct({location, getOperationName()}, a, tensorOf(adaptor.getB()),
                   adaptor.getTransposeA(), adaptor.getTransposeB());
  if (failed(shape))
    return failure();
  types.push_back(adaptor.getF32Result() ? f32TensorOf(context, *shape)
                                         : a.clone(*shape));
  return success();
}

int64_t pipewright::nn::productFlops(Value a, bool transposeA, Value y) {
  int64_t contracted = tensorOf(a).getShape().end()[transposeA ? -2 : -1];
  return 2 * contracted * tensorOf(y).getNumElements();
}

int64_t MatmulOp::getFlops() {
  return productFlops(getA(), getTransposeA(), getResult());
}

runtime::MatmulShape pipewright::nn::matmulShape(Value a, Value b,
                                                 bool transposeA,
                                                 bool transposeB, Value y) {
  ArrayRef<int64_t> aDims = tensorOf(a).getShape();
  ArrayRef<int64_t> bDims = tensorOf(b).getShape();
  runtime::MatmulShape shape;
  shape.batch = ShapedType::getNumElements(aDims.drop_back(2));
  shape.m = aDims.end()[transposeA ? -1 : -2];
  shape.k = aDims.end()[transposeA ? -2 : -1];
  shape.n = bDims.end()[transposeB ? -2 : -1];
  shape.transposeA = transposeA;
  shape.transposeB = transposeB;
  // Rows of all matrices of a batch are rows of one matrix.
  if (bDims.size() == 2 && !transposeA)
    shape.m *= std::exchange(shape.batch, 1);
  shape.broadcastB = bDims.size() == 2 && shape.batch > 1;
  shape.type = elementTypeOf(a);
  shape.result = elementTypeOf(y);
  return shape;
}

LibraryCall MatmulOp::getCall(StringRef addedTo) {
  runtime::MatmulShape shape = matmulShape(getA(), getB(), getTransposeA(),
                                           getTransposeB(), getResult());
  shape.beta = addedTo.empty() ? 0 : 1;
  // On CPUs products of bf16 are primitives, which are made once.
  return {
      .function = PIPEWRIGHT_CALL(matmul),
      .shape = fieldsOf(shape),
      .buffers = {getA(), getB(), getResult()},
      .work = CallWork::Matmul,
      .added = getResult(),
      .preparation = {.function = PIPEWRIGHT_CALL(prepareMatmul),
                      .everywhere = shape.type == runtime::ElementType::BF16}};
}

/// The gradient of `a` in `a * b`. `dy` has the operands' element type.
static Value leftGradient(GradientBuilder &g, MatmulOp op, Value dy) {
  bool isWeight = isWorkingCopy(op.getA());
  bool isShared =
      tensorOf(op.getA()).getRank() != tensorOf(op.getB()).getRank();
  // A batch of dy cannot be the right operand of a single matrix b.
  if (op.getTransposeA() && !isShared)
    return MatmulOp::create(g.builder(), op.getB(), dy, op.getTransposeB(),
                            /*transpose_b=*/true, isWeight);
  Value da =
      MatmulOp::create(g.builder(), dy, op.getB(),
                       /*transpose_a=*/false, !op.getTransposeB(), isWeight);
  return op.getTransposeA() ? g.transposeLast(da) : da;
}

/// The gradient of `b` in `a * b`.
static Value rightGradient(GradientBuilder &g, MatmulOp op, Value dy) {
  Value a = op.getA();
  bool transposeA = op.getTransposeA();
  bool isShared = tensorOf(a).getRank() != tensorOf(op.getB()).getRank();
  bool isWeight = isWorkingCopy(op.getB());
  if (isShared) {
    // One product over all batches: their rows are one long matrix.
    if (transposeA)
      a = g.transposeLast(a);
    transposeA = false;
    auto flatten = [&](Value x) {
      int64_t columns = tensorOf(x).getShape().back();
      int64_t rows =
          ShapedType::getNumElements(tensorOf(x).getShape().drop_back());
      return g.reshape(x, {rows, columns});
    };
    a = flatten(a);
    dy = flatten(dy);
  }
  if (op.getTransposeB())
    return MatmulOp::create(g.builder(), dy, a, /*transpose_a=*/true,
                            transposeA, isWeight);
  return MatmulOp::create(g.builder(), a, dy, !transposeA,
                          /*transpose_b=*/false, isWeight);
}

FailureOr<Gradients> MatmulOp::buildGradients(GradientBuilder &g, Value dy) {
  dy = g.toElementTypeOf(getA(), dy);
  return Gradients{leftGradient(g, *this, dy), rightGradient(g, *this, dy)};
}

//===----------------------------------------------------------------------===//
// ConvOp and its gradients
//===----------------------------------------------------------------------===//

namespace {
/// The attributes of a convolution, from an op or an adaptor of one.
struct ConvAttributes {
  ArrayRef<int64_t> strides, pads, dilations;
  int64_t groups;
  bool channelsLast;

  template <typename T>
  static ConvAttributes of(T op) {
    return {op.getStrides(), op.getPads(), op.getDilations(),
            static_cast<int64_t>(op.getGroups()), op.getChannelsLast()};
  }
};
} // namespace

/// The type of a convolution without its bias.
static FailureOr<RankedTensorType> inferConv(InferenceSite site,
                                             RankedTensorType images,
                                             RankedTensorType filters,
                                             const ConvAttributes &attributes) {
  // (C1)
  if (images.getRank() != 4 || filters.getRank() != 4)
    return site.error("expects images and filters of rank 4, but got ", images,
                      " and ", filters);
  bool isLast = attributes.channelsLast;
  RankedTensorType x = channelsFirst(images, isLast);
  RankedTensorType w = channelsFirst(filters, isLast);
  // (C3)
  int64_t groups = attributes.groups;
  if (groups < 1 || x.getDimSize(1) % groups != 0 ||
      w.getDimSize(0) % groups != 0)
    return site.error("expects groups that divide ", x.getDimSize(1),
                      " input and ", w.getDimSize(0),
                      " output channels, but got ", groups);
  // (C4)
  if (w.getDimSize(1) != x.getDimSize(1) / groups)
    return site.error("expects filters with ", x.getDimSize(1) / groups,
                      " input channels, but got ", filters);
  // (C2), (C5)
  FailureOr<SmallVector<int64_t>> image =
      inferWindows(site, x.getShape().drop_front(2), w.getShape().drop_front(2),
                   attributes.strides, attributes.pads, attributes.dilations);
  if (failed(image))
    return failure();
  return channelsLast(
      x.clone({x.getDimSize(0), w.getDimSize(0), (*image)[0], (*image)[1]}),
      isLast);
}

LogicalResult ConvOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  FailureOr<RankedTensorType> type =
      inferConv(site, tensorOf(adaptor.getX()), tensorOf(adaptor.getW()),
                ConvAttributes::of(adaptor));
  if (failed(type))
    return failure();
  // (C1)
  int64_t channels =
      type->getDimSize(channelDim(type->getRank(), adaptor.getChannelsLast()));
  if (Value bias = adaptor.getBias())
    if (tensorOf(bias).getShape() != ArrayRef<int64_t>{channels})
      return site.error("expects a bias of ", channels, " elements, but got ",
                        tensorOf(bias));
  // (C6)
  for (Value operand : {adaptor.getW(), adaptor.getBias()})
    if (operand && tensorOf(operand).getElementType() != type->getElementType())
      return site.error("expects operands of one element type, but got ",
                        tensorOf(adaptor.getX()), " and ", tensorOf(operand));
  types.push_back(*type);
  return success();
}

/// Multiply-adds of a convolution with results `y`, counted 2 each.
static int64_t convFlops(RankedTensorType y, RankedTensorType w) {
  return 2 * y.getNumElements() *
         ShapedType::getNumElements(w.getShape().drop_front());
}

int64_t ConvOp::getFlops() {
  RankedTensorType y = getResult().getType();
  return convFlops(y, getW().getType()) + (getBias() ? y.getNumElements() : 0);
}

int64_t ConvBackwardDataOp::getFlops() {
  return convFlops(getDy().getType(), getW().getType());
}

int64_t ConvBackwardWeightOp::getFlops() {
  return convFlops(getDy().getType(), getResult().getType());
}

FailureOr<Gradients> ConvOp::buildGradients(GradientBuilder &g, Value dy) {
  Value dx = ConvBackwardDataOp::create(
      g.builder(), getX().getType(), dy, getW(), getStrides(), getPads(),
      getDilations(), getGroups(), getChannelsLast());
  Value dw = ConvBackwardWeightOp::create(
      g.builder(), f32TensorOf(getContext(), getW().getType().getShape()), dy,
      getX(), getStrides(), getPads(), getDilations(), getGroups(),
      getChannelsLast());
  if (!getBias())
    return Gradients{dx, dw};
  SmallVector<int64_t> axes = {0, 2, 3};
  if (getChannelsLast())
    axes = {0, 1, 2};
  return Gradients{dx, dw,
                   ReduceSumOp::create(g.builder(), g.widen(dy), axes,
                                       /*keep_dims=*/false)};
}

/// A transposed convolution: what is linear in both operands, and the adjoint
/// of a convolution in the first.
FailureOr<Gradients> ConvBackwardDataOp::buildGradients(GradientBuilder &g,
                                                        Value dresult) {
  dresult = g.toElementTypeOf(getDy(), dresult);
  Value ddy = ConvOp::create(g.builder(), dresult, getW(), /*bias=*/Value(),
                             getStrides(), getPads(), getDilations(),
                             getGroups(), getChannelsLast());
  Value dw = ConvBackwardWeightOp::create(
      g.builder(), f32TensorOf(getContext(), getW().getType().getShape()),
      getDy(), dresult, getStrides(), getPads(), getDilations(), getGroups(),
      getChannelsLast());
  return Gradients{ddy, dw};
}

/// Checks that the convolution of `x` and `w` has the type of `dy`.
template <typename OpTy>
static LogicalResult verifyConvGradient(OpTy op, RankedTensorType x,
                                        RankedTensorType w) {
  FailureOr<RankedTensorType> type = inferConv(
      {op.getLoc(), OpTy::getOperationName()}, x, w, ConvAttributes::of(op));
  if (failed(type))
    return failure();
  // (C1)
  if (*type != op.getDy().getType())
    return op.emitOpError("expects a gradient of type ")
           << *type << ", but got " << op.getDy().getType();
  return success();
}

LogicalResult ConvBackwardDataOp::verify() {
  // (C2)
  if (getDy().getType().getElementType() != getW().getType().getElementType())
    return emitOpError("expects operands of one element type, but got ")
           << getDy().getType() << " and " << getW().getType();
  return verifyConvGradient(*this, getResult().getType(), getW().getType());
}

LogicalResult ConvBackwardWeightOp::verify() {
  return verifyConvGradient(*this, getX().getType(), getResult().getType());
}

/// The call of a convolution, whose directions share one shape; `images` and
/// `filters` are what the forward convolution reads.
template <class ConvolutionOp>
static LibraryCall convolutionCall(ConvolutionOp op, CallName function,
                                   Value images, Value filters,
                                   StringRef weight) {
  RankedTensorType w = channelsFirst(tensorOf(filters), op.getChannelsLast());
  auto shape = windowShape<runtime::ConvolutionShape>(
      op, images, w.getShape().drop_front(2));
  shape.o = w.getDimSize(0);
  shape.dilationH = op.getDilations()[0];
  shape.dilationW = op.getDilations()[1];
  shape.groups = op.getGroups();
  shape.keepPackedWeight = !weight.empty();
  return {.function = function,
          .shape = fieldsOf(shape),
          .work = CallWork::Convolution,
          .isNumbered = true,
          .weight = weight};
}

LibraryCall ConvOp::getCall(StringRef) {
  LibraryCall call = convolutionCall(*this, PIPEWRIGHT_CALL(convolutionForward),
                                     getX(), getW(), weightBehind(getW()));
  call.buffers = {getX(), getW(), getBias(), getResult()};
  call.preparation = {.function = PIPEWRIGHT_CALL(prepareConvolutionForward),
                      .option = getBias() ? "true" : "false"};
  return call;
}

LibraryCall ConvBackwardDataOp::getCall(StringRef) {
  LibraryCall call =
      convolutionCall(*this, PIPEWRIGHT_CALL(convolutionBackwardData),
                      getResult(), getW(), weightBehind(getW()));
  call.buffers = {getDy(), getW(), getResult()};
  call.preparation.function = PIPEWRIGHT_CALL(prepareConvolutionBackwardData);
  return call;
}

LibraryCall ConvBackwardWeightOp::getCall(StringRef addedTo) {
  LibraryCall call =
      convolutionCall(*this, PIPEWRIGHT_CALL(convolutionBackwardWeight), getX(),
                      getResult(), addedTo);
  call.buffers = {getDy(), getX(), getResult()};
  call.added = getResult();
  call.saysAdded = true;
  call.preparation.function = PIPEWRIGHT_CALL(prepareConvolutionBackwardWeight);
  return call;
}
