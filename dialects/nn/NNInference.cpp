//===- NNInference.cpp - Result types from operands -----------------------===//
//
// Broadcasting, reductions and windows: the inference that several families
// share.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNLimits.h"
#include "dialects/nn/NNOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace pipewright::nn;

std::string pipewright::nn::formatList(ArrayRef<int64_t> list) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(list, os);
  os << ']';
  return text;
}

std::string pipewright::nn::problemOfSize(ArrayRef<int64_t> shape) {
  if (shape.size() > kMaxTensorRank)
    return "expects a tensor of at most " + std::to_string(kMaxTensorRank) +
           " dimensions, but got " + std::to_string(shape.size());
  bool isEmpty = llvm::is_contained(shape, 0), isTooLarge = false;
  int64_t count = 1;
  for (int64_t dim : shape) {
    isTooLarge |= dim < 0 || dim > kMaxTensorElements;
    if (!isEmpty && !isTooLarge)
      isTooLarge =
          llvm::MulOverflow(count, dim, count) || count > kMaxTensorElements;
  }
  if (!isTooLarge)
    return "";
  return "expects a tensor of at most " + std::to_string(kMaxTensorElements) +
         " elements, but got one of " + formatList(shape);
}

/// The type with its dimensions in another order; itself where `permutes` is
/// false or its rank is another.
static RankedTensorType permuted(RankedTensorType type, bool permutes,
                                 ArrayRef<int64_t> permutation) {
  if (!permutes || type.getRank() != static_cast<int64_t>(permutation.size()))
    return type;
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return type.clone(shape);
}

RankedTensorType pipewright::nn::channelsFirst(RankedTensorType type,
                                               bool isLast) {
  return permuted(type, isLast, kToChannelsFirst);
}

RankedTensorType pipewright::nn::channelsLast(RankedTensorType type,
                                              bool isLast) {
  return permuted(type, isLast, kToChannelsLast);
}

FailureOr<SmallVector<int64_t>>
pipewright::nn::broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  SmallVector<int64_t> shape(lhs);
  for (auto [dim, other] :
       llvm::zip(MutableArrayRef<int64_t>(shape).take_back(rhs.size()), rhs)) {
    if (dim != other && dim != 1 && other != 1)
      return failure();
    // Not the maximum: a dimension of 0 beats the 1 that stretches to it.
    dim = dim == 1 ? other : dim;
  }
  return shape;
}

LogicalResult pipewright::nn::inferElementwise(InferenceSite site, Value lhs,
                                               Value rhs,
                                               SmallVectorImpl<Type> &types) {
  RankedTensorType lhsType = tensorOf(lhs), rhsType = tensorOf(rhs);
  // (C1)
  FailureOr<SmallVector<int64_t>> shape =
      broadcastShapes(lhsType.getShape(), rhsType.getShape());
  if (failed(shape))
    return site.error("expects shapes that broadcast, but got ", lhsType,
                      " and ", rhsType);
  // (C2)
  if (lhsType.getElementType() != rhsType.getElementType())
    return site.error("expects operands of one element type, but got ", lhsType,
                      " and ", rhsType);
  types.push_back(RankedTensorType::get(*shape, lhsType.getElementType()));
  return success();
}

LogicalResult pipewright::nn::inferReduction(InferenceSite site, Value x,
                                             ArrayRef<int64_t> axes,
                                             bool keepDims,
                                             SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensorOf(x);
  // (C1)
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= type.getRank())
      return site.error("expects axes in [0, ", type.getRank(), "), but got ",
                        axis);
    if (index > 0 && axis <= axes[index - 1])
      return site.error("expects ascending axes, but got ", formatList(axes));
  }
  SmallVector<int64_t> shape;
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(index)))
      shape.push_back(size);
    else if (keepDims)
      shape.push_back(1);
  }
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

FailureOr<SmallVector<int64_t>>
pipewright::nn::inferWindows(InferenceSite site, ArrayRef<int64_t> image,
                             ArrayRef<int64_t> kernel,
                             ArrayRef<int64_t> strides, ArrayRef<int64_t> pads,
                             ArrayRef<int64_t> dilations) {
  auto checkList = [&](StringRef name, ArrayRef<int64_t> list, size_t size,
                       int64_t least) -> LogicalResult {
    if (list.size() == size &&
        llvm::all_of(list, [&](int64_t entry) { return entry >= least; }))
      return success();
    return site.error("expects ", size, " ", name, " of at least ", least,
                      ", but got ", formatList(list));
  };
  if (failed(checkList("kernel sizes", kernel, 2, 1)) ||
      failed(checkList("strides", strides, 2, 1)) ||
      failed(checkList("pads", pads, 4, 0)) ||
      failed(checkList("dilations", dilations, 2, 1)))
    return failure();
  for (ArrayRef<int64_t> list : {kernel, strides, pads, dilations})
    if (llvm::any_of(list, [](int64_t each) { return each > kMaxWindowEntry; }))
      return site.error("expects kernel sizes, strides, pads and dilations of "
                        "at most ",
                        kMaxWindowEntry, ", but got ", formatList(list));
  if (std::string problem = problemOfSize(image); !problem.empty())
    return site.error(problem);
  SmallVector<int64_t> result;
  for (size_t dim : {0, 1}) {
    int64_t window = (kernel[dim] - 1) * dilations[dim] + 1;
    int64_t padded = image[dim] + pads[dim] + pads[dim + 2];
    if (window > padded)
      return site.error("expects a window of at most the padded image's size ",
                        padded, ", but got ", window, " along ",
                        dim == 0 ? "height" : "width");
    result.push_back((padded - window) / strides[dim] + 1);
  }
  return result;
}

bool pipewright::nn::hasEmptyWindow(int64_t image, int64_t low, int64_t outputs,
                                    int64_t kernel, int64_t stride,
                                    int64_t dilation) {
  // The last window starts behind the image, or the first one ends before it.
  if ((outputs - 1) * stride - low >= image || (kernel - 1) * dilation < low)
    return true;
  if (dilation <= image)
    return false;
  // Only a window that steps over the image is left: element k lies before it,
  // the next one behind. Those windows start between two positions.
  for (int64_t k = 0; k + 1 < kernel && k * dilation < low; ++k) {
    int64_t first = std::max<int64_t>(image - (k + 1) * dilation + low, 0);
    int64_t last = low - 1 - k * dilation;
    int64_t output = (first + stride - 1) / stride;
    if (output * stride <= last && output < outputs)
      return true;
  }
  return false;
}

Value pipewright::nn::createSplat(OpBuilder &builder, Location location,
                                  RankedTensorType type, double value) {
  Type elementType = type.getElementType();
  TypedAttr element = isa<FloatType>(elementType)
                          ? TypedAttr(FloatAttr::get(elementType, value))
                          : TypedAttr(IntegerAttr::get(
                                elementType, static_cast<int64_t>(value)));
  return ConstantOp::create(builder, location,
                            DenseElementsAttr::get(type, Attribute(element)));
}

Value pipewright::nn::createScalar(OpBuilder &builder, Location location,
                                   double value) {
  return createSplat(builder, location,
                     RankedTensorType::get({}, builder.getF32Type()), value);
}
