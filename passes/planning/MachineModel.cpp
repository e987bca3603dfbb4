//===- MachineModel.cpp - What a rank computes with -----------------------===//
//
// Machines by name. That of the machine at hand is in MachineProbe.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <limits>

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
                                                       : 700e12;
  machine.convolutionFlops = machine.matmulFlops / 2;
  // The kernel for f32 uses no tensor cores.
  machine.attentionFlops = precision == Precision::BF16 ? 350e12 : 15e12;
  machine.bandwidth = 2.8e12;
  machine.secondsPerRandom = 1e-12;
  machine.secondsPerCall = 3e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 300e9;
  machine.cores = std::numeric_limits<int64_t>::max();
  return machine;
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

} // namespace pipewright
