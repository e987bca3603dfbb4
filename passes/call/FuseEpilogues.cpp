//===- FuseEpilogues.cpp - call-fuse-epilogues ----------------------------===//
//
// Gives work on products to the library that makes them, where that saves a
// pass over memory:
//
//   forward     product + bias                      bias
//               product + bias -> GELU              bias_gelu
//   backward    product -> gradient of GELU         gelu_gradient
//                       -> sums over rows           gelu_bias_gradient
//
//===----------------------------------------------------------------------===//

#include "passes/call/Passes.h"

#include "dialects/call/CallDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace pipewright::call {
#define GEN_PASS_DEF_CALLFUSEEPILOGUES
#include "passes/call/Passes.h.inc"

//===----------------------------------------------------------------------===//
// What can be fused
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The columns of a product; 1 of a scalar.
static int64_t columnsOf(Value value) {
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  return shape.empty() ? 1 : shape.back();
}

/// The product whose only use leads to `value` through views, if cuBLASLt can
/// work on it: one right matrix, rounded to the type of its operands.
static nn::MatmulOp soleProduct(Value value) {
  while (value.hasOneUse()) {
    if (auto product = value.getDefiningOp<nn::MatmulOp>()) {
      bool isOne =
          typeOf(product.getB()).getRank() == 2 &&
          (!product.getTransposeA() || typeOf(product.getA()).getRank() == 2);
      bool isRounded = typeOf(value).getElementType() ==
                       typeOf(product.getA()).getElementType();
      return isOne && isRounded ? product : nn::MatmulOp();
    }
    auto view = value.getDefiningOp<nn::ViewOpInterface>();
    if (!view)
      break;
    value = view->getOperand(0);
  }
  return {};
}

/// Who reads the value, also through views.
static SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  for (Operation *user : value.getUsers())
    if (isa<nn::ViewOpInterface>(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
    else
      readers.push_back(user);
  return readers;
}

/// A view of the value as `type`; the value itself where it has that type.
static Value viewAs(OpBuilder &builder, Location loc, Value value,
                    RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return nn::ReshapeOp::create(builder, loc, type, value);
}

static bool isTanh(nn::GeluApproximation approximation) {
  return approximation == nn::GeluApproximation::Tanh;
}

/// What cuBLASLt needs of a matrix that goes with a GELU.
static bool suitsGelu(nn::MatmulOp product) {
  return columnsOf(product.getResult()) % 8 == 0;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

namespace {
/// `sum = product + bias`.
struct BiasedProduct {
  nn::AddOp sum;
  nn::MatmulOp product;
  Value bias;
};
} // namespace

static std::optional<BiasedProduct> matchBiasedProduct(nn::AddOp sum) {
  for (auto [bias, summand] : {std::pair(sum.getLhs(), sum.getRhs()),
                               std::pair(sum.getRhs(), sum.getLhs())}) {
    nn::MatmulOp product = soleProduct(summand);
    if (!product || product->getBlock() != sum->getBlock())
      continue;
    int64_t columns = columnsOf(product.getResult());
    // Frameworks never ask cuBLASLt for this, and nothing is to be gained.
    if (columns == 1)
      continue;
    if (typeOf(bias).getShape() == ArrayRef<int64_t>(columns) &&
        summand.getType() == sum.getResult().getType())
      return BiasedProduct{sum, product, bias};
  }
  return std::nullopt;
}

/// Puts the fused op at `loc` where the sum is, which goes.
static MatmulEpilogueOp fuse(BiasedProduct biased, MatmulEpilogue epilogue,
                             Location loc) {
  auto [sum, product, bias] = biased;
  OpBuilder builder(sum);
  auto fused = MatmulEpilogueOp::create(
      builder, loc, product.getA(), product.getB(), bias,
      /*pre_activation=*/Value(), product.getTransposeA(),
      product.getTransposeB(), epilogue);
  // With a GELU the sum is the second result.
  sum.getResult().replaceAllUsesWith(viewAs(builder, sum.getLoc(),
                                            fused->getResults().back(),
                                            typeOf(sum.getResult())));
  sum.erase();
  return fused;
}

/// Adds a bias in the product's kernel. A GELU behind it comes along if no
/// other compiled op reads the sum.
static void fuseForward(nn::AddOp sum, bool withGelu) {
  std::optional<BiasedProduct> biased = matchBiasedProduct(sum);
  if (!biased)
    return;
  SmallVector<Operation *> compiled = llvm::filter_to_vector(
      readersOf(sum.getResult()), llvm::IsaPred<nn::KernelOpInterface>);
  // A kernel adds the bias for nothing to what it reads anyway.
  if (compiled.empty()) {
    fuse(*biased, MatmulEpilogue::Bias, sum.getLoc());
    return;
  }
  auto gelu = dyn_cast<nn::GeluOp>(compiled.front());
  if (!withGelu || compiled.size() > 1 || !gelu ||
      !isTanh(gelu.getApproximate()) || !suitsGelu(biased->product) ||
      gelu->getBlock() != sum->getBlock())
    return;
  MatmulEpilogueOp fused =
      fuse(*biased, MatmulEpilogue::BiasGelu, gelu.getLoc());
  OpBuilder builder(gelu);
  gelu.getResult().replaceAllUsesWith(
      viewAs(builder, gelu.getLoc(), fused.getY(), typeOf(gelu.getResult())));
  gelu.erase();
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// The sums over all rows among the readers of a gradient: those of a bias.
static nn::ReduceSumOp findBiasGradient(Value gradient) {
  for (Operation *reader : readersOf(gradient)) {
    auto sum = dyn_cast<nn::ReduceSumOp>(reader);
    if (!sum || sum->getBlock() != gradient.getParentBlock() ||
        columnsOf(sum.getX()) != columnsOf(gradient))
      continue;
    int64_t rank = typeOf(sum.getX()).getRank();
    if (llvm::equal(sum.getAxes(), llvm::seq<int64_t>(0, rank - 1)))
      return sum;
  }
  return {};
}

/// Multiplies by the slope of GELU in the product's kernel, and sums over rows
/// there where that gives the gradient of a bias in f32.
static void fuseBackward(nn::GeluBackwardOp gelu) {
  nn::MatmulOp product = soleProduct(gelu.getDy());
  if (!product || !isTanh(gelu.getApproximate()) || !suitsGelu(product) ||
      product->getBlock() != gelu->getBlock())
    return;
  RankedTensorType type = typeOf(product.getResult());
  Value result = gelu.getResult();
  nn::ReduceSumOp sum;
  if (type.getElementType().isF32() &&
      columnsOf(result) == type.getShape().back())
    sum = findBiasGradient(result);

  OpBuilder builder(gelu);
  Location loc = gelu.getLoc();
  auto fused = MatmulEpilogueOp::create(
      builder, loc, product.getA(), product.getB(), /*bias=*/Value(),
      viewAs(builder, loc, gelu.getX(), type), product.getTransposeA(),
      product.getTransposeB(),
      sum ? MatmulEpilogue::GeluBiasGradient : MatmulEpilogue::GeluGradient);
  if (sum) {
    builder.setInsertionPoint(sum);
    sum.getResult().replaceAllUsesWith(viewAs(
        builder, sum.getLoc(), fused.getBeside(), typeOf(sum.getResult())));
    sum.erase();
  }
  builder.setInsertionPoint(gelu);
  result.replaceAllUsesWith(viewAs(builder, loc, fused.getY(), typeOf(result)));
  gelu.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Before sm_90, GELU in an epilogue writes twice and is slower than a kernel
/// of its own.
bool mayFuseGelu(StringRef epilogues, int64_t architecture) {
  return epilogues == "all" || (epilogues == "auto" && architecture >= 90);
}

namespace {
/// `Worthwhile`: what is not slower than a kernel.
enum class Extent { None, Bias, Worthwhile, All };

struct FuseEpilogues : impl::CallFuseEpiloguesBase<FuseEpilogues> {
  using impl::CallFuseEpiloguesBase<FuseEpilogues>::CallFuseEpiloguesBase;

  void runOnOperation() override {
    std::optional<Extent> extent = readExtent();
    if (!extent)
      return signalPassFailure();
    if (*extent == Extent::None)
      return;
    SmallVector<Block *> bodies;
    getOperation().walk<WalkOrder::PreOrder>([&](Block *block) {
      // Kernels are compiled as they are.
      if (isa<ModuleOp>(block->getParentOp()) &&
          block->getParentOp() != getOperation())
        return WalkResult::skip();
      bodies.push_back(block);
      return WalkResult::advance();
    });
    for (Block *body : bodies)
      fuse(*body, *extent);
  }

private:
  /// Nothing, with a diagnostic, where an option is none that we know.
  std::optional<Extent> readExtent() {
    auto choice = llvm::StringSwitch<std::optional<Extent>>(epilogues)
                      .Case("auto", mayFuseGelu(epilogues, architecture)
                                        ? Extent::Worthwhile
                                        : Extent::Bias)
                      .Case("none", Extent::None)
                      .Case("bias", Extent::Bias)
                      .Case("all", Extent::All)
                      .Default(std::nullopt);
    if (!choice)
      getOperation().emitError("expects epilogues to be auto, none, bias or "
                               "all, but got '")
          << epilogues << "'";
    return choice;
  }

  /// Whether GELU, or its gradient, goes into a product of this type. cuBLASLt
  /// is made for it in bf16; in f32 it is slower there, and its documentation
  /// promises no algorithm.
  static bool takesGelu(Extent extent, Value value) {
    return extent == Extent::All || (extent == Extent::Worthwhile &&
                                     typeOf(value).getElementType().isBF16());
  }

  static void fuse(Block &body, Extent extent) {
    for (auto sum : llvm::to_vector(body.getOps<nn::AddOp>()))
      fuseForward(sum, takesGelu(extent, sum.getResult()));
    for (auto gelu : llvm::to_vector(body.getOps<nn::GeluBackwardOp>()))
      if (takesGelu(extent, gelu.getResult()))
        fuseBackward(gelu);
    // Products that nobody reads any more, and views of them.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isa<nn::MatmulOp, nn::ViewOpInterface>(op) && op.use_empty())
        op.erase();
  }
};
} // namespace
} // namespace pipewright::call
