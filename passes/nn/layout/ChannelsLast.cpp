//===- ChannelsLast.cpp - nn-channels-last --------------------------------===//
//
// One walk over the model in its order. An op on images is made anew on images
// whose channels lie last; transpositions stand where such an image meets an op
// that does not care for layouts, and are made only there.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNCHANNELSLAST
#include "passes/nn/Passes.h.inc"

namespace {

class ChannelsLast {
public:
  explicit ChannelsLast(ModuleOp module) : module(module), table(module) {}

  void run();

private:
  void storeFiltersLast();
  void storeLast(WeightOp weight);
  void rewriteModel(func::FuncOp model);
  bool wants(Operation *op) const;
  void rewrite(Operation *op);
  template <typename ReductionOp>
  void rewriteReduction(ReductionOp op);
  void rewriteTranspose(TransposeOp op);
  Operation *cloneLast(Operation *op);
  void replaceOld();

  bool isImage(Value value) const { return tensorOf(value).getRank() == 4; }
  bool hasLast(Value value) const { return lastForms.contains(value); }
  bool anyLast(Operation *op) const {
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return hasLast(operand); });
  }
  Value last(Value value);
  Value lastOfBroadcast(Value value);

  ModuleOp module;
  SymbolTable table;
  /// Maps a value that has its channels second to its form with them last.
  DenseMap<Value, Value> lastForms;
  /// Ops that have been made anew, in the model's order.
  SmallVector<Operation *> old;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Whether dimensions of more than one element keep their order.
static bool movesOnlyOnes(ArrayRef<int64_t> shape,
                          ArrayRef<int64_t> permutation) {
  int64_t before = -1;
  for (int64_t dim : permutation) {
    if (shape[dim] == 1)
      continue;
    if (dim < before)
      return false;
    before = dim;
  }
  return true;
}

/// The value with its dimensions in another order. What is transposed already
/// is transposed once, or not at all.
static Value permuted(OpBuilder &builder, Value value,
                      ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> order(permutation);
  Location location = value.getLoc();
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    for (int64_t &dim : order)
      dim = transpose.getPermutation()[dim];
    value = transpose.getX();
  }
  RankedTensorType type = tensorOf(value);
  if (llvm::equal(order, llvm::seq<int64_t>(0, type.getRank())))
    return value;
  if (!movesOnlyOnes(type.getShape(), order))
    return TransposeOp::create(builder, location, value, order);
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return ConstantOp::create(builder, location,
                              constant.getValue().reshape(type.clone(shape)));
  return ReshapeOp::create(builder, location, type.clone(shape), value);
}

static Value permutedAfter(Value value, ArrayRef<int64_t> permutation) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  return permuted(builder, value, permutation);
}

Value ChannelsLast::last(Value value) {
  if (Value known = lastForms.lookup(value))
    return known;
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !cast->hasOneUse())
    return lastForms[value] = permutedAfter(value, kToChannelsLast);
  // The other way round they are one kernel.
  OpBuilder builder(cast);
  Value moved = permuted(builder, cast.getX(), kToChannelsLast);
  old.push_back(cast);
  return lastForms[value] =
             CastOp::create(builder, cast.getLoc(),
                            channelsLast(tensorOf(value), true), moved);
}

/// The form of an operand that broadcasts to images.
Value ChannelsLast::lastOfBroadcast(Value value) {
  RankedTensorType type = tensorOf(value);
  if (type.getNumElements() == 1)
    return value;
  if (isImage(value))
    return last(value);
  SmallVector<int64_t> shape(4 - type.getRank(), 1);
  llvm::append_range(shape, type.getShape());
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value image =
      ReshapeOp::create(builder, value.getLoc(), type.clone(shape), value);
  return permuted(builder, image, kToChannelsLast);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The filters of a convolution, transposed or not, whose images have their
/// channels second; null of any other op.
static Value filtersOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<ConvOp, ConvBackwardDataOp>([](auto conv) {
        return conv.getChannelsLast() ? Value() : Value(conv.getW());
      })
      .Default([](Operation *) { return Value(); });
}

/// Weights that convolutions read lie in memory as these want them.
void ChannelsLast::storeFiltersLast() {
  llvm::SetVector<Operation *> weights;
  module.walk([&](Operation *op) {
    Value filters = filtersOf(op);
    auto read = filters ? filters.getDefiningOp<ParameterOp>() : ParameterOp();
    auto weight = read ? table.lookup<WeightOp>(read.getWeight()) : WeightOp();
    if (weight && weight.getRole() != WeightRole::State)
      weights.insert(weight);
  });
  for (Operation *weight : weights)
    storeLast(cast<WeightOp>(weight));
}

void ChannelsLast::storeLast(WeightOp weight) {
  weight.setType(channelsLast(weight.getTensorType(), true));
  weight.setChannelsLast(true);
  SmallVector<ParameterOp> reads;
  module.walk([&](ParameterOp read) {
    if (read.getWeight() == weight.getSymName())
      reads.push_back(read);
  });
  for (ParameterOp read : reads) {
    read.getResult().setType(channelsLast(read.getResult().getType(), true));
    Value first = permutedAfter(read, kToChannelsFirst);
    read.getResult().replaceAllUsesExcept(first, first.getDefiningOp());
    lastForms[first] = read;
    old.push_back(first.getDefiningOp());
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether the op is to work on images with the channels last.
bool ChannelsLast::wants(Operation *op) const {
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ConvOp, ConvBackwardDataOp, MaxPoolOp, AveragePoolOp>(
          [](auto typed) { return !typed.getChannelsLast(); })
      .Case([&](BatchNormOp norm) {
        return isImage(norm.getX()) && !norm.getChannelsLast();
      })
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, TransposeOp, ConcatOp,
            SliceOp, PadOp>([&](Operation *) { return anyLast(op); })
      .Default([&](Operation *) {
        auto kernel = dyn_cast<KernelOpInterface>(op);
        return kernel && isImage(op->getResult(0)) &&
               kernel.getRowSpace().isPointwise() && anyLast(op);
      });
}

/// The op on the forms of its operands with the channels last.
Operation *ChannelsLast::cloneLast(Operation *op) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isVector = isa<ConvOp, BatchNormOp>(op) && !isImage(operand);
    operands.push_back(isVector ? operand : lastOfBroadcast(operand));
  }
  OpBuilder builder(op);
  Operation *made = builder.clone(*op);
  made->setOperands(operands);
  for (auto [before, after] :
       llvm::zip_equal(op->getResults(), made->getResults())) {
    after.setType(channelsLast(tensorOf(before), true));
    if (isImage(before))
      lastForms[before] = after;
    else
      before.replaceAllUsesWith(after);
  }
  old.push_back(op);
  return made;
}

/// Numbers for each dimension, in the order that the dimensions get.
static SmallVector<int64_t> reordered(ArrayRef<int64_t> numbers) {
  SmallVector<int64_t> result;
  for (int64_t dim : kToChannelsLast)
    result.push_back(numbers[dim]);
  return result;
}

/// Where a dimension goes. The inverse of kToChannelsLast is its like.
static int64_t moved(int64_t dim) { return kToChannelsFirst[dim]; }

template <typename ReductionOp>
void ChannelsLast::rewriteReduction(ReductionOp op) {
  ArrayRef<int64_t> axes = op.getAxes();
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < 4; ++dim)
    if (!llvm::is_contained(axes, dim))
      kept.push_back(moved(dim));
  // What is left would stand in another order.
  if (!op.getKeepDims() && !llvm::is_sorted(kept))
    return;
  SmallVector<int64_t> made = llvm::map_to_vector(axes, moved);
  llvm::sort(made);
  cast<ReductionOp>(cloneLast(op)).setAxes(made);
}

void ChannelsLast::rewriteTranspose(TransposeOp op) {
  OpBuilder builder(op);
  SmallVector<int64_t> order = llvm::map_to_vector(op.getPermutation(), moved);
  op.getResult().replaceAllUsesWith(permuted(builder, last(op.getX()), order));
  old.push_back(op);
}

void ChannelsLast::rewrite(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<ConvOp, ConvBackwardDataOp, MaxPoolOp, AveragePoolOp, BatchNormOp>(
          [&](auto typed) {
            cast<decltype(typed)>(cloneLast(typed)).setChannelsLast(true);
          })
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>(
          [&](auto reduction) { rewriteReduction(reduction); })
      .Case([&](TransposeOp transpose) { rewriteTranspose(transpose); })
      .Case([&](ConcatOp concat) {
        cast<ConcatOp>(cloneLast(concat)).setAxis(moved(concat.getAxis()));
      })
      .Case([&](SliceOp slice) {
        auto made = cast<SliceOp>(cloneLast(slice));
        made.setStarts(reordered(slice.getStarts()));
        made.setSizes(reordered(slice.getSizes()));
        made.setSteps(reordered(slice.getSteps()));
      })
      .Case([&](PadOp pad) {
        auto made = cast<PadOp>(cloneLast(pad));
        made.setLow(reordered(pad.getLow()));
        made.setHigh(reordered(pad.getHigh()));
      })
      .Default([&](Operation *) { cloneLast(op); });
}

/// Gives what is left of the users of old ops the channel back where they
/// expect it. From the last to the first: all other users are gone then.
void ChannelsLast::replaceOld() {
  for (Operation *op : llvm::reverse(old)) {
    for (Value result : op->getResults())
      if (!result.use_empty() && !isa<TransposeOp, ReshapeOp>(op))
        result.replaceAllUsesWith(
            permutedAfter(lastForms.at(result), kToChannelsFirst));
    if (op->use_empty())
      op->erase();
  }
}

void ChannelsLast::rewriteModel(func::FuncOp model) {
  // Without convolutions nobody gains.
  if (model.isExternal() || llvm::none_of(model.getOps(), [](Operation &op) {
        return bool(filtersOf(&op));
      }))
    return;
  SmallVector<Operation *> ops;
  for (Operation &op : model.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    if (wants(op))
      rewrite(op);
}

void ChannelsLast::run() {
  storeFiltersLast();
  for (auto model : module.getOps<func::FuncOp>())
    rewriteModel(model);
  replaceOld();
}

namespace {

struct ChannelsLastPass : impl::NNChannelsLastBase<ChannelsLastPass> {
  using NNChannelsLastBase::NNChannelsLastBase;

  void runOnOperation() override { ChannelsLast(getOperation()).run(); }
};

} // namespace
} // namespace pipewright::nn
