//===- RowIndexTests.cpp - indices come together without division ---------===//

#include "codegen/kernels/plan/RowIndex.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright::codegen;

namespace {

class RowIndexTest : public ::testing::Test {
protected:
  MLIRContext context;
  AffineExpr row = getAffineDimExpr(0, &context);
  AffineExpr column = getAffineDimExpr(1, &context);

  /// Indices into rows of `outer` and one row of `inner`.
  llvm::SmallVector<Index> at(llvm::ArrayRef<int64_t> outer,
                              llvm::ArrayRef<int64_t> inner) {
    llvm::SmallVector<Index> indices = split(row, outer);
    llvm::append_range(indices, split(column, inner));
    return indices;
  }
};

TEST_F(RowIndexTest, AllDigitsTogetherAreTheNumber) {
  EXPECT_EQ(linearize(at({4, 8}, {3, 5}), {4, 8, 3, 5}, &context),
            row * 15 + column);
}

TEST_F(RowIndexTest, OnesDoNotSeparateDigits) {
  EXPECT_EQ(linearize(at({4, 1, 8}, {5}), {4, 1, 8, 5}, &context),
            row * 5 + column);
}

TEST_F(RowIndexTest, LeadingDigitsNeedOneDivision) {
  llvm::SmallVector<Index> indices = at({4, 8, 2}, {5});
  EXPECT_EQ(linearize(llvm::ArrayRef(indices).take_front(2), {4, 8}, &context),
            row.floorDiv(2));
}

TEST_F(RowIndexTest, ReshapeKeepsWhatBothShapesShare) {
  llvm::SmallVector<Index> indices =
      reshape(at({4, 8}, {5}), {4, 8, 5}, {32, 5}, &context);
  ASSERT_EQ(indices.size(), 2u);
  EXPECT_EQ(indices[0].expr(), row);
  EXPECT_EQ(indices[1].expr(), column);
}

TEST_F(RowIndexTest, ReshapeThereAndBackIsNothing) {
  llvm::SmallVector<Index> indices =
      reshape(at({6}, {10}), {6, 10}, {2, 3, 2, 5}, &context);
  indices = reshape(indices, {2, 3, 2, 5}, {6, 10}, &context);
  EXPECT_EQ(linearize(indices, {6, 10}, &context), row * 10 + column);
  EXPECT_FALSE(dividesColumn(linearize(indices, {6, 10}, &context)));
}

TEST_F(RowIndexTest, DividedColumnsAreFound) {
  EXPECT_TRUE(dividesColumn(row + column.floorDiv(4)));
  EXPECT_TRUE(dividesColumn((row * 3 + column) % 4));
  EXPECT_FALSE(dividesColumn(row % 4 + column));
}

} // namespace
