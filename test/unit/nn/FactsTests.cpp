//===- FactsTests.cpp - What nn ops say of rows and precision -------------===//
//
// Which rows an op goes over, what a kernel may do with each of its results,
// and that an op which does not say is refused when it is compiled.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright::nn;

namespace {

/// An op class that has some of the traits.
template <template <typename> class... Traits>
struct OpWith {
  template <template <typename> class Trait>
  static constexpr bool hasTrait() {
    return (std::is_same_v<Trait<OpWith>, Traits<OpWith>> || ...);
  }
};

// Ops that do not say what they are, or say two things, are refused.
static_assert(!sayWhatTheyAre<OpWith<>>);
static_assert(!sayWhatTheyAre<OpWith<KernelOpInterface::Trait>>);
static_assert(
    !sayWhatTheyAre<OpWith<KernelOpInterface::Trait, CostOpInterface::Trait>>);
static_assert(!sayWhatTheyAre<
              OpWith<LibraryOpInterface::Trait, PrecisionOpInterface::Trait>>);
static_assert(!sayWhatTheyAre<
              OpWith<CostOpInterface::Trait, PrecisionOpInterface::Trait>>);
static_assert(!sayWhatTheyAre<
              OpWith<KernelOpInterface::Trait, LibraryOpInterface::Trait,
                     CostOpInterface::Trait, PrecisionOpInterface::Trait>>);
static_assert(!sayWhatTheyAre<ReluOp, OpWith<>>);
static_assert(
    sayWhatTheyAre<OpWith<KernelOpInterface::Trait, CostOpInterface::Trait,
                          PrecisionOpInterface::Trait>>);
static_assert(sayWhatTheyAre<OpWith<KnownByName>>);

class Facts : public testing::Test {
protected:
  Facts() { context.loadDialect<NNDialect, func::FuncDialect>(); }

  /// The row space of the only op of a function with these arguments.
  RowSpace spaceOf(StringRef arguments, StringRef op) {
    module = parseSourceString<ModuleOp>(
        ("func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}").str(),
        &context);
    if (!module)
      return {RowWalk::Leaf, 0, {}, {}};
    auto function = *module->getOps<func::FuncOp>().begin();
    return cast<KernelOpInterface>(function.front().front()).getRowSpace();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

using Lengths = SmallVector<int64_t>;
using Forms = SmallVector<ResultForm>;

TEST_F(Facts, PointwiseOpsGoOverRowsOfAnyLength) {
  RowSpace space =
      spaceOf("%x: tensor<2x3x4xf32>", "%0 = nn.relu %x : tensor<2x3x4xf32>");
  EXPECT_EQ(space.walk, RowWalk::Costly);
  EXPECT_EQ(space.elements, 24);
  EXPECT_EQ(space.columns, (Lengths{4, 12, 24}));
  EXPECT_EQ(space.results, Forms{ResultForm::Element});
  EXPECT_TRUE(space.isElementwise());
}

TEST_F(Facts, RowsDoNotMixWhatIsRepeatedAndWhatIsNot) {
  RowSpace space = spaceOf("%x: tensor<2x3x4xf32>, %b: tensor<4xf32>",
                           "%0 = nn.add %x, %b : (tensor<2x3x4xf32>, "
                           "tensor<4xf32>) -> tensor<2x3x4xf32>");
  EXPECT_EQ(space.walk, RowWalk::Cheap);
  EXPECT_EQ(space.columns, Lengths{4});
}

TEST_F(Facts, ReductionsOfTheEndGiveOneNumberForEachRow) {
  RowSpace space =
      spaceOf("%x: tensor<2x3x4xf32>", "%0 = nn.reduce_sum %x axes = [1, 2] : "
                                       "tensor<2x3x4xf32> -> tensor<2xf32>");
  EXPECT_EQ(space.walk, RowWalk::Rows);
  EXPECT_EQ(space.columns, Lengths{12});
  EXPECT_EQ(space.results, Forms{ResultForm::Row});
  EXPECT_FALSE(space.isElementwise());
}

TEST_F(Facts, OtherReductionsAreKnownAfterAllRows) {
  RowSpace space =
      spaceOf("%x: tensor<2x3x4xf32>", "%0 = nn.reduce_sum %x axes = [0] : "
                                       "tensor<2x3x4xf32> -> tensor<3x4xf32>");
  EXPECT_EQ(space.walk, RowWalk::Columns);
  EXPECT_EQ(space.columns, (Lengths{4, 12}));
  EXPECT_EQ(space.results, Forms{ResultForm::Whole});
}

TEST_F(Facts, NormsHaveStatisticsForEachRow) {
  RowSpace space = spaceOf("%x: tensor<2x4xf32>, %s: tensor<4xf32>", R"(
    %0:3 = nn.layer_norm %x, %s, %s epsilon = 1.0e-5
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
        -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>))");
  EXPECT_EQ(space.walk, RowWalk::Rows);
  EXPECT_EQ(space.columns, Lengths{4});
  EXPECT_EQ(space.results,
            (Forms{ResultForm::Element, ResultForm::Row, ResultForm::Row}));
}

TEST_F(Facts, BatchNormsKeepTheirStatisticsInMemory) {
  constexpr const char *arguments = "%x: tensor<2x3x4x5xf32>, "
                                    "%s: tensor<3xf32>";
  RowSpace space = spaceOf(arguments, R"(
    %0:3 = nn.batch_norm %x, %s, %s epsilon = 1.0e-5 momentum = 0.9
      : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>))");
  EXPECT_EQ(space.walk, RowWalk::Several);
  EXPECT_EQ(space.columns, Lengths{20});
  EXPECT_EQ(space.results,
            (Forms{ResultForm::Element, ResultForm::WholeInMemory,
                   ResultForm::WholeInMemory}));
  EXPECT_FALSE(space.isElementwise());
}

TEST_F(Facts, GroupNormsShareTheirLastNest) {
  RowSpace space = spaceOf("%x: tensor<2x6x4x5xf32>, %s: tensor<6xf32>", R"(
    %0:3 = nn.group_norm %x, %s, %s groups = 3 epsilon = 1.0e-5
      : (tensor<2x6x4x5xf32>, tensor<6xf32>, tensor<6xf32>)
        -> (tensor<2x6x4x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>))");
  EXPECT_EQ(space.walk, RowWalk::Several);
  EXPECT_EQ(space.columns, Lengths{20});
  EXPECT_EQ(space.results,
            (Forms{ResultForm::Element, ResultForm::WholeInMemory,
                   ResultForm::WholeInMemory}));
}

TEST_F(Facts, TransposesThatKeepTheLastDimensionMoveWholeRows) {
  RowSpace kept = spaceOf("%x: tensor<2x3x4xf32>",
                          "%0 = nn.transpose %x permutation = [1, 0, 2] : "
                          "tensor<2x3x4xf32> -> tensor<3x2x4xf32>");
  EXPECT_EQ(kept.walk, RowWalk::Move);
  EXPECT_EQ(kept.columns, Lengths{4});
  RowSpace moved = spaceOf("%x: tensor<2x3x4xf32>",
                           "%0 = nn.transpose %x permutation = [0, 2, 1] : "
                           "tensor<2x3x4xf32> -> tensor<2x4x3xf32>");
  EXPECT_EQ(moved.walk, RowWalk::Transposition);
  EXPECT_TRUE(moved.moves());
}

TEST_F(Facts, MasksOfAttentionStayWide) {
  spaceOf("%q: tensor<1x1x2x4xf32>, %m: tensor<1x1x2x2xf32>", R"(
    %0 = nn.neg %m : tensor<1x1x2x2xf32>
    %o, %s = nn.attention %q, %q, %q mask %m scale = 0.5 dropout_rate = 0.0
        dropout_id = 0
      : (tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>,
         tensor<1x1x2x2xf32>) -> (tensor<1x1x2x4xf32>, tensor<1x1x2x2xf32>))");
  ASSERT_TRUE(module);
  module->walk([](AttentionOp op) {
    auto fact = cast<PrecisionOpInterface>(op.getOperation());
    EXPECT_EQ(fact.getPrecision(op->getOpOperand(0)), PrecisionRule::BF16);
    EXPECT_EQ(fact.getPrecision(op->getOpOperand(3)), PrecisionRule::F32);
  });
}

} // namespace
