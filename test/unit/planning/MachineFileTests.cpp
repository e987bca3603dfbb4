//===- MachineFileTests.cpp - What was measured of this machine -----------===//

#include "passes/planning/MachineFile.h"

#include "gtest/gtest.h"

using namespace pipewright;

static MeasuredMachine someMachine() {
  MeasuredMachine machine;
  machine.models[Precision::F32].matmulFlops = 1.0 / 3 * 1e11;
  machine.models[Precision::BF16].linkLatency = 7e-6;
  return machine;
}

TEST(MachineFile, ReadsWhatItWrote) {
  MeasuredMachine machine = someMachine();
  auto models = readMachine(writeMachine(machine));
  ASSERT_TRUE(static_cast<bool>(models)) << llvm::toString(models.takeError());
  ASSERT_EQ(models->size(), 2u);
  for (const auto &[precision, model] : *models)
    for (const MachineFigure &figure : machineFigures())
      EXPECT_EQ(model.*figure.place, machine.models[precision].*figure.place)
          << figure.name.str();
}

TEST(MachineFile, RefusesWhatIsNoMachine) {
  const std::string text = writeMachine(someMachine());
  auto refusal = [](std::string text) {
    auto models = readMachine(text);
    return models ? std::string() : llvm::toString(models.takeError());
  };
  auto replaced = [&](std::string from, std::string to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  EXPECT_EQ(refusal(""), "expects 'pipewright machine 2' first");
  EXPECT_EQ(refusal(replaced("machine 2", "machine 1")),
            "expects 'pipewright machine 2' first");
  EXPECT_EQ(refusal(text.substr(0, text.size() / 2 - 40)).substr(0, 7),
            "expects");
  EXPECT_EQ(refusal(replaced("f32 bandwidth 12000000000", "f32 bandwidth 0")),
            "expects 'f32 bandwidth' above 0");
  EXPECT_EQ(refusal(replaced("f32 bandwidth 12000000000", "f32 bandwidth x")),
            "expects a number behind 'f32 bandwidth'");
  EXPECT_EQ(refusal(replaced("f32 bandwidth 12000000000", "f32 bandwidth inf")),
            "expects 'f32 bandwidth' above 0");
  EXPECT_EQ(refusal(replaced("f32 bandwidth 12000000000", "f32 bandwidth -1")),
            "expects 'f32 bandwidth' above 0");
}
