//===- BatchPlaces.cpp - Where the samples of a batch lie -----------------===//
//
// Each op maps the places of its operands to one of its result.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/BatchPlaces.h"

#include "dialects/nn/NNOps.h"
#include "frontends/common/TensorBuilder.h"
#include "frontends/onnx/ops/Broadcasting.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pipewright::frontend {

using Place = std::optional<BatchPlace>;

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// Neighbouring samples are that many elements of the tensor apart.
static int64_t distanceOf(BatchPlace place, ArrayRef<int64_t> shape) {
  return stridesOf(shape)[place.dim] * place.stride;
}

/// What a batch of samples that far apart is in dimension `dim`, if that has
/// all of it.
static Place placeIn(ArrayRef<int64_t> shape, int64_t dim, int64_t distance,
                     int64_t batch) {
  int64_t stride = stridesOf(shape)[dim];
  if (stride == 0 || shape[dim] == 0 || distance % stride ||
      stride * shape[dim] % (distance * batch))
    return std::nullopt;
  return BatchPlace{dim, distance / stride};
}

Place placeAfterReshape(BatchPlace place, ArrayRef<int64_t> from,
                        ArrayRef<int64_t> to, int64_t batch) {
  int64_t distance = distanceOf(place, from);
  for (size_t j = 0; j < to.size(); ++j)
    if (Place found = placeIn(to, j, distance, batch))
      return found;
  return std::nullopt;
}

/// Whether one of the dimensions of `from` is dimension `dim` of `to`.
static bool isKept(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim) {
  Shape strides = stridesOf(from);
  int64_t stride = stridesOf(to)[dim];
  for (auto [size, other] : llvm::zip(from, strides))
    if (size == to[dim] && other == stride)
      return true;
  return false;
}

Place likelyPlace(BatchPlace place, ArrayRef<int64_t> from,
                  ArrayRef<int64_t> to) {
  int64_t distance = distanceOf(place, from), last = int64_t(to.size()) - 1;
  // A dimension of its own; one that is new; one that was there; the width of a
  // token or an image, which batches hardly ever are in.
  auto likelihood = [&](BatchPlace found) {
    if (to[found.dim] == 1)
      return found.dim == place.dim ? 4 : 3;
    return found.dim == last ? 0 : isKept(from, to, found.dim) ? 1 : 2;
  };
  Place best;
  for (int64_t j = 0; j <= last; ++j)
    if (Place found = placeIn(to, j, distance, /*batch=*/1))
      if (!best || likelihood(*found) > likelihood(*best))
        best = found;
  return best;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The place in another dimension; none without one.
static Place moved(Place place, std::optional<int64_t> dim) {
  if (!place || !dim)
    return std::nullopt;
  return BatchPlace{*dim, place->stride};
}

static Place afterTranspose(nn::TransposeOp op, BatchPlace place) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  return moved(place, llvm::find(permutation, place.dim) - permutation.begin());
}

/// Rows of operand 0 are rows of the product, columns of operand 1 columns.
static Place afterMatmul(nn::MatmulOp op, unsigned index, BatchPlace place) {
  int64_t rank = shapeOf(op->getOperand(index)).size();
  int64_t resultRank = shapeOf(op.getResult()).size();
  bool isLast = index ? op.getTransposeB() : !op.getTransposeA();
  int64_t contracted = rank - (isLast ? 1 : 2);
  if (place.dim < rank - 2)
    return place;
  if (place.dim == contracted)
    return std::nullopt;
  return moved(place, resultRank - (index ? 1 : 2));
}

/// Of a reduction: dimensions behind those that are gone move up.
static Place afterReduction(Operation *op, ArrayRef<int64_t> axes,
                            BatchPlace place) {
  if (llvm::is_contained(axes, place.dim))
    return std::nullopt;
  if (op->hasAttr("keep_dims"))
    return place;
  return moved(place, place.dim - llvm::count_if(axes, [&](int64_t axis) {
                        return axis < place.dim;
                      }));
}

/// Of an op whose operands and result have the same dimensions, but for those
/// on the left that an operand has not.
static Place afterBroadcast(Operation *op, unsigned index, BatchPlace place) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(index));
  ArrayRef<int64_t> to = shapeOf(op->getResult(0));
  int64_t dim = place.dim + int64_t(to.size()) - int64_t(from.size());
  if (dim < 0 || to[dim] != from[place.dim])
    return std::nullopt;
  return moved(place, dim);
}

static Place afterOperand(Operation *op, unsigned index, BatchPlace place,
                          int64_t batch) {
  return TypeSwitch<Operation *, Place>(op)
      .Case([&](nn::ReshapeOp reshape) {
        return placeAfterReshape(place, shapeOf(reshape.getX()),
                                 shapeOf(reshape.getResult()), batch);
      })
      .Case([&](nn::TransposeOp transpose) {
        return afterTranspose(transpose, place);
      })
      .Case([&](nn::MatmulOp matmul) {
        return afterMatmul(matmul, index, place);
      })
      .Case<nn::ReduceSumOp, nn::ReduceMeanOp, nn::ReduceMaxOp>(
          [&](auto reduction) {
            return afterReduction(op, reduction.getAxes(), place);
          })
      .Case([&](nn::EmbeddingOp) {
        // Rows of a table that each sample has are picked by indices of all.
        return index ? Place(place) : std::nullopt;
      })
      .Case([&](nn::ConcatOp concat) {
        return place.dim == int64_t(concat.getAxis()) ? std::nullopt
                                                      : Place(place);
      })
      .Case<nn::ConvOp, nn::ConvBackwardDataOp, nn::MaxPoolOp,
            nn::AveragePoolOp>([&](auto) {
        return index == 0 && place.dim == 0 ? Place(place) : std::nullopt;
      })
      .Case<nn::EmbeddingBackwardOp, nn::SoftmaxCrossEntropyOp>(
          [&](auto) { return std::nullopt; })
      .Default([&](Operation *) { return afterBroadcast(op, index, place); });
}

Place BatchPlaces::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    ArrayRef<int64_t> shape = shapeOf(value);
    return shape.empty() || shape.front() != batch ? std::nullopt
                                                   : Place(BatchPlace{0});
  }
  if (value != op->getResult(0))
    return std::nullopt;
  Place result;
  for (OpOperand &operand : op->getOpOperands()) {
    Place from = known(operand.get());
    if (!from)
      continue;
    Place found = afterOperand(op, operand.getOperandNumber(), *from, batch);
    if (result && found && *result != *found)
      return std::nullopt;
    if (found)
      result = found;
  }
  return result;
}

Place BatchPlaces::find(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.back();
    size_t before = open.size();
    if (Operation *op = places.contains(next) ? nullptr : next.getDefiningOp())
      for (Value operand : op->getOperands())
        if (!places.contains(operand))
          open.push_back(operand);
    if (open.size() != before)
      continue;
    open.pop_back();
    if (!places.contains(next))
      places[next] = compute(next);
  }
  return known(value);
}

} // namespace pipewright::frontend
