//===- PlanTests.cpp - Weights files and figures for people ---------------===//

#include "codegen/package/WeightsFile.h"
#include "codegen/plan/Plan.h"
#include "dialects/nn/NNOps.h"
#include "passes/step/CostModel.h"

#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
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
  nn::WeightOp addWeight(StringRef name, ArrayRef<int64_t> shape) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    return nn::WeightOp::create(builder, module->getLoc(), name, type,
                                nn::WeightRole::Parameter,
                                /*file_rows=*/IntegerAttr(),
                                /*channels_last=*/false,
                                /*outputs=*/nn::MatrixOutputsAttr());
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

TEST_F(WeightsFileTest, LeavesOutRowsThatAreNotTheModels) {
  addWeight("table", {8, 2}).setFileRows(5);
  store.addOwned("table", std::vector<char>(5 * 2 * 4, 1));
  std::string text;
  llvm::raw_string_ostream os(text);
  ASSERT_FALSE(codegen::writeWeights(*module, store, os));
  uint64_t length = llvm::support::endian::read64le(text.data());
  EXPECT_EQ(text.size(), 8 + length + 40);
  EXPECT_TRUE(StringRef(text).contains(R"("shape":[5,2])"));
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

TEST(Plan, PredictsForACoreEachAndTellsOfFewerHere) {
  codegen::Plan plan;
  plan.simulation.globalStepTime = 2;
  auto end = [&] {
    std::string text;
    llvm::raw_string_ostream os(text);
    plan.print(os);
    return text.substr(text.find("predicted step time"));
  };
  EXPECT_EQ(end(), "predicted step time: 2.00 s, with a core for each rank\n");
  plan.coresHere = 2;
  plan.secondsHere = 3;
  EXPECT_EQ(end(), "predicted step time: 2.00 s, with a core for each rank\n"
                   "on the 2 cores here: 3.00 s at least\n");
}

TEST(Plan, SharesTheCriticalPath) {
  // rank 0 | F0                 B0
  // rank 1 |      F0---- B0----
  schedules::Schedule order;
  order.ranks = order.stages = 2;
  order.microBatches = 1;
  order.rankOfStage = {0, 1};
  order.order = {{schedules::Task::forward(0, 0),
                  schedules::Task::backward(0, 0), schedules::Task::update(0)},
                 {schedules::Task::forward(1, 0),
                  schedules::Task::backward(1, 0), schedules::Task::update(1)}};
  schedules::TaskCosts costs = schedules::TaskCosts::uniform(2, 1, 1);
  costs.stages[1].forward = costs.stages[1].backward = 3;
  costs.linkLatency = 1;
  auto simulation = schedules::simulate(order, costs);
  ASSERT_TRUE(static_cast<bool>(simulation));
  EXPECT_EQ(codegen::criticalPathShares(order, *simulation),
            "rank 1 60.0 %, rank 0 20.0 %, messages 20.0 %");
  EXPECT_EQ(codegen::criticalPathShares({}, {}), "");
}

TEST(CostModel, CoresBoundTheStepTime) {
  schedules::Simulation simulation;
  simulation.globalStepTime = 2;
  simulation.ranks.resize(4);
  for (schedules::RankSummary &rank : simulation.ranks)
    rank.busySeconds = 1.5;
  EXPECT_DOUBLE_EQ(secondsOnCores(simulation, 1, 2), 3);
  EXPECT_DOUBLE_EQ(secondsOnCores(simulation, 2, 2), 6);
  EXPECT_DOUBLE_EQ(secondsOnCores(simulation, 1, 8), 2);
}

/// A stage that keeps an input (16 bytes), an output (32) and a stash of two
/// values (64 and 128); `halves` are put behind its backward.
static schedules::StageCosts keptBytes(StringRef halves) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, pipe::PipeDialect>();
  std::string text = R"(
    pipe.stage @s0 {
      pipe.forward sources [#pipe.input<"x">] {
      ^bb0(%x: tensor<4xf32>):
        %y = nn.constant dense<0.0> : tensor<8xf32>
        %a = nn.constant dense<0.0> : tensor<16xf32>
        %b = nn.constant dense<0.0> : tensor<32xf32>
        pipe.return %y : tensor<8xf32> stash %a, %b : tensor<16xf32>, tensor<32xf32>
      }
      pipe.backward inputs [0] outputs [0] gradients_of [0] input_gradients [] {
      ^bb0(%x: tensor<4xf32>, %y: tensor<8xf32>, %a: tensor<16xf32>, %b: tensor<32xf32>, %dy: tensor<8xf32>):
        pipe.return
      }
    )" + halves.str() +
                     "}";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  schedules::StageCosts costs;
  if (module)
    countKeptBytes(*module->getOps<pipe::StageOp>().begin(), costs);
  return costs;
}

TEST(CostModel, CountsWhatIsKeptBetweenTasks) {
  schedules::StageCosts whole = keptBytes("");
  EXPECT_EQ(whole.stashBytes, 16 + 32 + 64 + 128);
  EXPECT_EQ(whole.weightStashBytes, -1);

  // The second half keeps the whole stash for one of its values, beside the
  // received gradient (32) and the handover (4).
  schedules::StageCosts split = keptBytes(R"(
    pipe.input_gradient inputs [] outputs [0] stash [0] gradients_of [] input_gradients [] {
    ^bb0(%y: tensor<8xf32>, %a: tensor<16xf32>):
      %h = nn.constant dense<0.0> : tensor<1xf32>
      pipe.return stash %h : tensor<1xf32>
    }
    pipe.weight_gradient inputs [0] outputs [] stash [1] gradients_of [0] {
    ^bb0(%x: tensor<4xf32>, %b: tensor<32xf32>, %dy: tensor<8xf32>, %h: tensor<1xf32>):
      pipe.return
    })");
  EXPECT_EQ(split.stashBytes, 16 + 32 + 64 + 128);
  EXPECT_EQ(split.weightStashBytes, 16 + 64 + 128 + 32 + 4);

  // Without a value of the stash it keeps none of it.
  schedules::StageCosts light = keptBytes(R"(
    pipe.input_gradient inputs [] outputs [] stash [0, 1] gradients_of [0] input_gradients [] {
    ^bb0(%a: tensor<16xf32>, %b: tensor<32xf32>, %dy: tensor<8xf32>):
      pipe.return
    }
    pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    })");
  EXPECT_EQ(light.weightStashBytes, 16);
}

TEST(CostModel, MeasuresSomethingPlausible) {
  for (const auto &[precision, machine] :
       measureCore({Precision::F32, Precision::BF16}))
    for (const MachineFigure &figure : machineFigures()) {
      double number = machine.*figure.place;
      if (!figure.isKnown(machine))
        continue;
      if (figure.isCount) {
        EXPECT_GE(number, 1) << figure.name.str();
        continue;
      }
      EXPECT_GT(number, figure.unit == "s" ? 1e-12 : 1e7) << figure.name.str();
      EXPECT_LT(number, figure.unit == "s" ? 1e-3 : 1e13) << figure.name.str();
    }
  EXPECT_GE(countCores(), 1);
}
