//===- PlanTests.cpp - Weights files and figures for people ---------------===//

#include "codegen/package/PlanFile.h"
#include "codegen/package/WeightsFile.h"
#include "dialects/nn/NNOps.h"
#include "passes/analysis/CostModel.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright;

namespace {

class WeightsFileTest : public testing::Test {
protected:
  WeightsFileTest() {
    context.loadDialect<nn::NNDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }
  void addWeight(StringRef name, ArrayRef<int64_t> shape) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    nn::WeightOp::create(builder, module->getLoc(), name, type,
                         nn::WeightRole::Parameter);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  nn::WeightStore store;
};

} // namespace

TEST_F(WeightsFileTest, HasAnAlignedHeaderAndAllBytes) {
  addWeight("a", {2, 2});
  addWeight("b", {});
  store.addOwned("a", std::vector<char>(16, 1));
  store.addSplat("b", {0, 0, 0, 2}, 1);
  std::string text;
  llvm::raw_string_ostream os(text);
  ASSERT_FALSE(codegen::writeWeights(*module, store, os));
  uint64_t length = llvm::support::endian::read64le(text.data());
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(text.size(), 8 + length + 20);
  auto header = llvm::json::parse(StringRef(text).substr(8, length));
  ASSERT_TRUE(static_cast<bool>(header));
  const llvm::json::Object *a = header->getAsObject()->getObject("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->getString("dtype"), "F32");
  EXPECT_EQ((*a->getArray("data_offsets"))[1].getAsInteger(), 16);
  EXPECT_TRUE(
      header->getAsObject()->getObject("b")->getArray("shape")->empty());
  EXPECT_EQ(text.back(), 2);
}

TEST_F(WeightsFileTest, RefusesAWeightWithoutItsBytes) {
  addWeight("a", {2, 2});
  store.addOwned("a", std::vector<char>(12, 1));
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::Error error = codegen::writeWeights(*module, store, os);
  ASSERT_TRUE(static_cast<bool>(error));
  EXPECT_EQ(llvm::toString(std::move(error)),
            "weight 'a' expects 16 bytes, but got 12");
  EXPECT_EQ(text, "");
}

TEST(Plan, WritesFiguresForPeople) {
  EXPECT_EQ(codegen::formatBytes(12), "12 B");
  EXPECT_EQ(codegen::formatBytes(12'345'678), "12.3 MB");
  EXPECT_EQ(codegen::formatSeconds(0.0123), "12.30 ms");
  EXPECT_EQ(codegen::formatSeconds(2.5e-6), "2.5 us");
  EXPECT_EQ(codegen::formatSeconds(3), "3.00 s");
  EXPECT_EQ(codegen::count(1, "stage"), "1 stage");
  EXPECT_EQ(codegen::count(3, "rank"), "3 ranks");
}

TEST(CostModel, CoresBoundTheStepTime) {
  schedules::Simulation simulation;
  simulation.globalStepTime = 2;
  simulation.ranks.resize(4);
  for (schedules::RankSummary &rank : simulation.ranks)
    rank.busySeconds = 1.5;
  MachineModel machine;
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(predictStepSeconds(simulation, machine), 3);
  machine.cores = 8;
  EXPECT_DOUBLE_EQ(predictStepSeconds(simulation, machine), 2);
}

TEST(CostModel, MeasuresSomethingPlausible) {
  MachineModel machine = MachineModel::measure();
  EXPECT_GT(machine.matmulFlops, 1e8);
  EXPECT_GT(machine.bandwidth, 1e8);
  EXPECT_GE(machine.cores, 1);
}
