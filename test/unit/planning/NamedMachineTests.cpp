//===- NamedMachineTests.cpp - Machines that are known by name ------------===//

#include "passes/planning/NamedMachines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <set>
#include <string>

using namespace pipewright;

namespace {

TEST(NamedMachines, HaveAllFiguresOfEachPrecision) {
  std::set<std::string> names;
  for (const NamedMachine &named : namedMachines()) {
    EXPECT_TRUE(names.insert(named.name.str()).second) << named.name.str();
    const MachineModels models = machinesNamed(named.name);
    EXPECT_EQ(models.size(), named.precisions.size()) << named.name.str();
    for (const auto &[precision, model] : models)
      for (const MachineFigure &figure : machineFigures())
        EXPECT_GT(model.*figure.place, 0)
            << named.name.str() << " " << figure.name.str();
  }
}

// Data sheets: peaks of operations, bytes per second of memory, bytes. Nothing
// that a program reaches is above them.
TEST(NamedMachines, ReachNoMoreThanDataSheetsSay) {
  struct Sheet {
    const char *name;
    double peak, bandwidth, memory;
  };
  for (const Sheet &sheet : {Sheet{"h100-f32", 67e12, 3.35e12, 80e9},
                             {"h100-tf32", 494.7e12, 3.35e12, 80e9},
                             {"h100-bf16", 989.4e12, 3.35e12, 80e9},
                             {"h200-f32", 67e12, 4.8e12, 141e9},
                             {"h200-tf32", 494.7e12, 4.8e12, 141e9},
                             {"h200-bf16", 989.4e12, 4.8e12, 141e9},
                             {"a100-80gb-f32", 19.5e12, 2.039e12, 80e9},
                             {"a100-tf32", 156e12, 2.039e12, 80e9},
                             {"a100-bf16", 312e12, 2.039e12, 80e9},
                             {"v100-f32", 15.7e12, 900e9, 32e9},
                             {"v100-bf16", 125e12, 900e9, 32e9},
                             {"p100", 9.3e12, 732e9, 16e9},
                             {"p40-f32", 11.8e12, 346e9, 24e9}}) {
    const std::optional<MachineModel> machine = machineNamed(sheet.name);
    ASSERT_TRUE(machine) << sheet.name;
    for (double rate : {machine->matmulFlops, machine->convolutionFlops,
                        machine->attentionFlops})
      EXPECT_LE(rate, sheet.peak) << sheet.name;
    EXPECT_GE(machine->matmulFlops, 0.6 * sheet.peak) << sheet.name;
    EXPECT_LE(machine->bandwidth, sheet.bandwidth) << sheet.name;
    EXPECT_GE(machine->bandwidth, 0.8 * sheet.bandwidth) << sheet.name;
    EXPECT_EQ(machine->memory, sheet.memory) << sheet.name;
  }
}

TEST(NamedMachines, NamesSayPrecisionAndHosts) {
  EXPECT_EQ(machinesNamed("h100").size(), 3u);
  EXPECT_EQ(machinesNamed("h100x4").at(Precision::Tf32).hostRanks, 4);
  EXPECT_EQ(machinesNamed("h100-bf16x16").at(Precision::BF16).hostRanks, 16);
  EXPECT_EQ(machinesNamed("h100-bf16x16").size(), 1u);
  EXPECT_EQ(machinesNamed("v100").count(Precision::Tf32), 0u);
  EXPECT_FALSE(machineNamed("h100"));
  EXPECT_TRUE(machineNamed("cpu"));
  for (const char *name : {"", "h", "h100-", "h100-f16", "p40-bf16", "h100x0",
                           "h100x", "x8", "h100x8x8", "h100x4-bf16",
                           "h100x99999999999999999999", "a100-80gb-80gb"})
    EXPECT_TRUE(machinesNamed(name).empty()) << name;
  EXPECT_THAT(namesOfMachines(), testing::StartsWith("cpu, cpu-cluster, "));
  EXPECT_THAT(namesOfMachines(), testing::EndsWith(" or p40"));
}

} // namespace
