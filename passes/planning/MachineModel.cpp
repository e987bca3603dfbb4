//===- MachineModel.cpp - What a rank computes with -----------------------===//
//
// Machines by name. That of the machine at hand is in MachineProbe.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <thread>

using llvm::StringRef;

namespace pipewright {

StringRef nameOf(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return "f32";
  case Precision::Tf32:
    return "tf32";
  case Precision::BF16:
    return "bf16";
  }
  llvm_unreachable("all precisions are listed");
}

MachineModel MachineModel::h100(Precision precision) {
  MachineModel machine;
  machine.matmulFlops = precision == Precision::F32    ? 50e12
                        : precision == Precision::Tf32 ? 350e12
                                                       : 640e12;
  machine.convolutionFlops =
      precision == Precision::BF16 ? 600e12 : machine.matmulFlops / 2;
  // The kernel for f32 uses no tensor cores.
  machine.attentionFlops = precision == Precision::BF16 ? 218e12 : 15e12;
  machine.bandwidth = 2.8e12;
  machine.secondsPerRandom = 1e-12;
  machine.secondsPerCall = 2e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 300e9;
  return machine;
}

MachineModel MachineModel::a100() {
  return {.matmulFlops = 250e12,
          .convolutionFlops = 220e12,
          .attentionFlops = 120e12,
          .bandwidth = 1.7e12,
          .secondsPerRandom = 1.5e-12,
          .secondsPerCall = 2.5e-6,
          .linkLatency = 10e-6,
          .linkBandwidth = 250e9};
}

namespace {

/// One line for each machine that decisions can be made for.
struct NamedMachine {
  llvm::StringLiteral name;
  MachineModel (*make)();
};

} // namespace

static constexpr NamedMachine machines[] = {
    {"cpu", [] { return MachineModel(); }},
    {"h100-f32", [] { return MachineModel::h100(Precision::F32); }},
    {"h100-tf32", [] { return MachineModel::h100(Precision::Tf32); }},
    {"h100-bf16", [] { return MachineModel::h100(Precision::BF16); }},
    {"a100-bf16", [] { return MachineModel::a100(); }},
};

std::optional<MachineModel> MachineModel::named(StringRef name) {
  for (const NamedMachine &machine : machines)
    if (machine.name == name)
      return machine.make();
  return std::nullopt;
}

std::string MachineModel::names() {
  std::string text;
  for (auto [number, machine] : llvm::enumerate(machines)) {
    if (number > 0)
      text += number + 1 == std::size(machines) ? " or " : ", ";
    text += machine.name;
  }
  return text;
}

llvm::ArrayRef<MachineFigure> machineFigures() {
  static constexpr MachineFigure figures[] = {
      {"matmul_flops", &MachineModel::matmulFlops, "FLOP/s",
       "large matrix products"},
      {"convolution_flops", &MachineModel::convolutionFlops, "FLOP/s",
       "convolutions"},
      {"attention_flops", &MachineModel::attentionFlops, "FLOP/s",
       "attention's products, with a softmax between them"},
      {"bandwidth", &MachineModel::bandwidth, "B/s",
       "what a pointwise kernel reads and writes"},
      {"seconds_per_random", &MachineModel::secondsPerRandom, "s",
       "a random number of a dropout"},
      {"seconds_per_call", &MachineModel::secondsPerCall, "s",
       "a call, whatever it does"},
      {"link_latency", &MachineModel::linkLatency, "s",
       "a message between ranks, whatever it carries"},
      {"link_bandwidth", &MachineModel::linkBandwidth, "B/s",
       "what a message carries"}};
  return figures;
}

int64_t countCores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace pipewright
