//===- NNShape.cpp - Ops that move elements -------------------------------===//
//
// Each of these has another of them as its gradient.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Embedding.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

/// Whether the op's result is as long as its first operand along a dimension.
static bool keepsSize(Operation *op, size_t dim) {
  return tensorOf(op->getOperand(0)).getDimSize(dim) ==
         tensorOf(op->getResult(0)).getDimSize(dim);
}

//===----------------------------------------------------------------------===//
// ReshapeOp
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getX().getType(), to = getResult().getType();
  // (C1)
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("expects as many elements after as before, but got ")
           << from.getNumElements() << " in " << from << " and "
           << to.getNumElements() << " in " << to;
  // (C2)
  if (from.getElementType() != to.getElementType())
    return emitOpError("expects one element type, but got ")
           << from << " and " << to;
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getResult().getType())
    return getX();
  if (auto producer = getX().getDefiningOp<ReshapeOp>()) {
    getXMutable().assign(producer.getX());
    return getResult();
  }
  return {};
}

FailureOr<Gradients> ReshapeOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.reshape(dy, getX().getType().getShape())};
}

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType type = tensorOf(adaptor.getX());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  // (C1)
  llvm::BitVector seen(type.getRank());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= type.getRank() || seen.test(dim))
      break;
    seen.set(dim);
    shape.push_back(type.getDimSize(dim));
  }
  if (!seen.all() || permutation.size() != seen.size())
    return site.error("expects a permutation of ", type.getRank(),
                      " dimensions, but got ", formatList(permutation));
  types.push_back(type.clone(shape));
  return success();
}

RowSpace TransposeOp::getRowSpace() {
  ArrayRef<int64_t> permutation = getPermutation();
  auto keeps = [&](size_t dim) {
    return permutation[dim] == static_cast<int64_t>(dim);
  };
  bool keepsLast = permutation.empty() || keeps(permutation.size() - 1);
  return movementSpace(
      *this, keepsLast ? RowWalk::Move : RowWalk::Transposition, keeps);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation,
                  llvm::seq<int64_t>(0, getX().getType().getRank())))
    return getX();
  if (auto producer = getX().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : permutation)
      composed.push_back(producer.getPermutation()[dim]);
    setPermutation(composed);
    getXMutable().assign(producer.getX());
    return getResult();
  }
  return {};
}

FailureOr<Gradients> TransposeOp::buildGradients(GradientBuilder &g, Value dy) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [index, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = index;
  return Gradients{TransposeOp::create(g.builder(), dy, inverse)};
}

//===----------------------------------------------------------------------===//
// SliceOp
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType type = tensorOf(adaptor.getX());
  size_t rank = type.getRank();
  // (C1)
  for (ArrayRef<int64_t> list :
       {adaptor.getStarts(), adaptor.getSizes(), adaptor.getSteps()})
    if (list.size() != rank)
      return site.error("expects starts, sizes and steps of ", rank,
                        " entries, but got ", formatList(list));
  for (auto [dim, start, size, step] :
       llvm::zip(type.getShape(), adaptor.getStarts(), adaptor.getSizes(),
                 adaptor.getSteps())) {
    // (C2)
    if (size < 1 || step == 0)
      return site.error("expects sizes of at least 1 and steps that are not 0, "
                        "but got size ",
                        size, " and step ", step);
    // (C3)
    int64_t way = 0, last = 0;
    bool isFar = llvm::MulOverflow(size - 1, step, way) ||
                 llvm::AddOverflow(start, way, last);
    if (isFar || std::min(start, last) < 0 || std::max(start, last) >= dim)
      return site.error("expects elements in [0, ", dim, "), but got ", start,
                        " to ", last);
  }
  types.push_back(type.clone(adaptor.getSizes()));
  return success();
}

RowSpace SliceOp::getRowSpace() {
  return movementSpace(*this, RowWalk::Move, [&](size_t dim) {
    return keepsSize(*this, dim) && getSteps()[dim] == 1;
  });
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool isWhole = llvm::all_of(getSteps(), [](int64_t s) { return s == 1; });
  return isWhole && getX().getType() == getResult().getType() ? getX()
                                                              : OpFoldResult();
}

/// A dimension of `x` from its end to its start.
static Value reversed(GradientBuilder &g, Value x, int64_t dim) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x.getType()).getShape();
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[dim] = shape[dim] - 1;
  steps[dim] = -1;
  return SliceOp::create(g.builder(), x, starts, shape, steps);
}

/// Puts `step` - 1 zeros between the elements of a dimension: each element is
/// the first of `step`, and the last `step` - 1 zeros are cut off.
static Value spread(GradientBuilder &g, Value x, int64_t dim, int64_t step) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  const int64_t size = shape[dim];
  shape.insert(shape.begin() + dim + 1, 1);
  x = g.reshape(x, shape);
  SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
  high[dim + 1] = step - 1;
  x = PadOp::create(g.builder(), x, low, high);
  shape.erase(shape.begin() + dim + 1);
  shape[dim] = size * step;
  x = g.reshape(x, shape);
  shape[dim] = (size - 1) * step + 1;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  return SliceOp::create(g.builder(), x, starts, shape, steps);
}

FailureOr<Gradients> SliceOp::buildGradients(GradientBuilder &g, Value dy) {
  SmallVector<int64_t> low, high;
  for (auto [i, dim] : llvm::enumerate(getX().getType().getShape())) {
    const int64_t step = getSteps()[i], size = getSizes()[i];
    const int64_t last = getStarts()[i] + (size - 1) * step;
    low.push_back(std::min(getStarts()[i], last));
    high.push_back(dim - 1 - std::max(getStarts()[i], last));
    if (size > 1 && step < 0)
      dy = reversed(g, dy, i);
    if (size > 1 && std::abs(step) > 1)
      dy = spread(g, dy, i, std::abs(step));
  }
  return Gradients{PadOp::create(g.builder(), dy, low, high)};
}

//===----------------------------------------------------------------------===//
// PadOp
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType type = tensorOf(adaptor.getX());
  // (C1)
  for (ArrayRef<int64_t> list : {adaptor.getLow(), adaptor.getHigh()})
    if (list.size() != static_cast<size_t>(type.getRank()) ||
        llvm::any_of(list, [](int64_t entry) { return entry < 0; }))
      return site.error("expects low and high of ", type.getRank(),
                        " entries of at least 0, but got ", formatList(list));
  SmallVector<int64_t> shape;
  for (auto [dim, low, high] :
       llvm::zip(type.getShape(), adaptor.getLow(), adaptor.getHigh())) {
    int64_t &size = shape.emplace_back();
    if (llvm::AddOverflow(low, dim, size) ||
        llvm::AddOverflow(size, high, size))
      return site.error("expects low and high of sizes that a dimension can "
                        "have, but got ",
                        low, " and ", high);
  }
  types.push_back(type.clone(shape));
  return success();
}

RowSpace PadOp::getRowSpace() {
  return movementSpace(*this, RowWalk::Move,
                       [&](size_t dim) { return keepsSize(*this, dim); });
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return getX().getType() == getResult().getType() ? getX() : OpFoldResult();
}

FailureOr<Gradients> PadOp::buildGradients(GradientBuilder &g, Value dy) {
  SmallVector<int64_t> steps(getLow().size(), 1);
  return Gradients{SliceOp::create(g.builder(), dy, getLow(),
                                   getX().getType().getShape(), steps)};
}

//===----------------------------------------------------------------------===//
// ConcatOp
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  // (C1)
  if (adaptor.getInputs().empty())
    return site.error("expects at least 1 operand, but got 0");
  RankedTensorType first = tensorOf(adaptor.getInputs().front());
  // (C2)
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= first.getRank())
    return site.error("expects an axis in [0, ", first.getRank(), "), but got ",
                      axis);
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    RankedTensorType type = tensorOf(input);
    if (type.getElementType() != first.getElementType())
      return site.error("expects operands of one element type, but got ", first,
                        " and ", type);
    // (C3)
    SmallVector<int64_t> aligned(type.getShape());
    if (type.getRank() == first.getRank())
      aligned[axis] = first.getDimSize(axis);
    if (ArrayRef<int64_t>(aligned) != first.getShape())
      return site.error("expects operands that differ along axis ", axis,
                        " only, but got ", first, " and ", type);
    shape[axis] += type.getDimSize(axis);
  }
  types.push_back(first.clone(shape));
  return success();
}

RowSpace ConcatOp::getRowSpace() {
  return movementSpace(*this, RowWalk::Move,
                       [&](size_t dim) { return keepsSize(*this, dim); });
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? getInputs().front() : OpFoldResult();
}

FailureOr<Gradients> ConcatOp::buildGradients(GradientBuilder &g, Value dy) {
  int64_t rank = getResult().getType().getRank();
  SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
  Gradients parts;
  for (Value input : getInputs()) {
    ArrayRef<int64_t> sizes = tensorOf(input).getShape();
    parts.push_back(SliceOp::create(g.builder(), dy, starts, sizes, steps));
    starts[getAxis()] += sizes[getAxis()];
  }
  return parts;
}

//===----------------------------------------------------------------------===//
// BroadcastToOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastToOp::verify() {
  RankedTensorType from = getX().getType(), to = getResult().getType();
  // (C1)
  FailureOr<SmallVector<int64_t>> shape =
      broadcastShapes(from.getShape(), to.getShape());
  if (failed(shape) || ArrayRef<int64_t>(*shape) != to.getShape())
    return emitOpError("expects a shape that broadcasts to ")
           << to << ", but got " << from;
  // (C2)
  if (from.getElementType() != to.getElementType())
    return emitOpError("expects one element type, but got ")
           << from << " and " << to;
  return success();
}

OpFoldResult BroadcastToOp::fold(FoldAdaptor) {
  return getX().getType() == getResult().getType() ? getX() : OpFoldResult();
}

FailureOr<Gradients> BroadcastToOp::buildGradients(GradientBuilder &g,
                                                   Value dy) {
  return Gradients{g.unbroadcast(dy, getX().getType())};
}

//===----------------------------------------------------------------------===//
// EmbeddingOp, EmbeddingBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  RankedTensorType table = tensorOf(adaptor.getTable());
  // (C1)
  if (table.getRank() != 2)
    return InferenceSite{location, getOperationName()}.error(
        "expects a table of rank 2, but got ", table);
  SmallVector<int64_t> shape(tensorOf(adaptor.getIndices()).getShape());
  shape.push_back(table.getDimSize(1));
  types.push_back(table.clone(shape));
  return success();
}

static LogicalResult verifyPaddingRow(Operation *op, std::optional<int64_t> row,
                                      RankedTensorType table) {
  if (row && (*row < 0 || *row >= table.getDimSize(0)))
    return op->emitOpError("expects a padding row of [0, ")
           << table.getDimSize(0) << "), but got " << *row;
  return success();
}

LogicalResult EmbeddingOp::verify() {
  // (C2)
  return verifyPaddingRow(*this, getPaddingRow(), getTable().getType());
}

int64_t EmbeddingOp::countRows() {
  if (auto read = getTable().getDefiningOp<ParameterOp>())
    if (auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
            read, read.getWeightAttr()))
      return weight.getFileType().getDimSize(0);
  return getTable().getType().getDimSize(0);
}

IntegerUse EmbeddingOp::getIntegerUse(OpOperand &) { return IntegerUse::Index; }

IndexRange EmbeddingOp::getIndexRange() { return {.limit = countRows()}; }

FailureOr<Gradients> EmbeddingOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{EmbeddingBackwardOp::create(
      g.builder(), f32TensorOf(getContext(), getTable().getType().getShape()),
      dy, getIndices(), getPaddingRowAttr())};
}

LogicalResult EmbeddingBackwardOp::verify() {
  RankedTensorType table = getResult().getType();
  // (C1)
  if (table.getRank() != 2)
    return emitOpError("expects a result of rank 2, but got ") << table;
  // (C2)
  SmallVector<int64_t> shape(getIndices().getType().getShape());
  shape.push_back(table.getDimSize(1));
  if (getDy().getType().getShape() != ArrayRef<int64_t>(shape))
    return emitOpError("expects a gradient of shape ")
           << formatList(shape) << ", but got " << getDy().getType();
  // (C3)
  return verifyPaddingRow(*this, getPaddingRow(), table);
}

IntegerUse EmbeddingBackwardOp::getIntegerUse(OpOperand &) {
  return IntegerUse::Index;
}

IndexRange EmbeddingBackwardOp::getIndexRange() {
  return {.limit = getResult().getType().getDimSize(0)};
}

/// What is added to a row has the row's gradient; that of padding is not used.
FailureOr<Gradients> EmbeddingBackwardOp::buildGradients(GradientBuilder &g,
                                                         Value dresult) {
  if (getPaddingRow())
    return emitOpError("with a padding row has no gradient");
  Value dy = g.toElementTypeOf(getDy(), dresult);
  return Gradients{EmbeddingOp::create(g.builder(), dy, getIndices(),
                                       /*padding_row=*/IntegerAttr())};
}

int64_t EmbeddingBackwardOp::getFlops() {
  return getDy().getType().getNumElements();
}

/// `data` is looked up in a table, or added to its rows.
static SmallVector<ShapeField>
embeddingShape(int64_t rows, RankedTensorType table, RankedTensorType indices,
               Value data, int64_t paddingRow = -1) {
  return fieldsOf(runtime::EmbeddingShape{.rows = rows,
                                          .width = table.getDimSize(1),
                                          .count = indices.getNumElements(),
                                          .paddingRow = paddingRow,
                                          .type = elementTypeOf(data)});
}

LibraryCall EmbeddingOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(embedding),
          .shape = embeddingShape(countRows(), getTable().getType(),
                                  getIndices().getType(), getResult()),
          .buffers = {getTable(), getIndices(), getResult()}};
}

LibraryCall EmbeddingBackwardOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(embeddingBackward),
          .shape = embeddingShape(getResult().getType().getDimSize(0),
                                  getResult().getType(), getIndices().getType(),
                                  getDy(), getPaddingRow().value_or(-1)),
          .buffers = {getDy(), getIndices(), getResult()},
          .added = getResult(),
          .saysAdded = true,
          .preparation = {.function = PIPEWRIGHT_CALL(prepareEmbeddingBackward),
                          .everywhere = false}};
}
