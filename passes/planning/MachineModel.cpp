//===- MachineModel.cpp - What a rank computes with -----------------------===//
//
// Machines by name. That of the machine at hand is in MachineProbe.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
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
                                                       : 780e12;
  machine.processors = 132;
  machine.convolutionFlops =
      precision == Precision::BF16 ? 600e12 : machine.matmulFlops / 2;
  // The kernel for f32 uses no tensor cores.
  machine.attentionFlops = precision == Precision::BF16 ? 218e12 : 15e12;
  machine.bandwidth = 2.8e12;
  machine.secondsPerRandom = 1e-12;
  machine.secondsPerCall = 2e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 300e9;
  machine.hostRanks = 8;
  machine.networkLatency = 15e-6;
  machine.networkBandwidth = 45e9;
  // PCIe 5.0, 16 lanes: 63 GB/s.
  machine.hostBandwidth = 50e9;
  machine.hostMemory = 2e12 / 8;
  machine.memory = 80e9;
  return machine;
}

MachineModel MachineModel::h200() {
  MachineModel machine = h100(Precision::BF16);
  machine.bandwidth = 4e12;
  machine.memory = 141e9;
  return machine;
}

MachineModel MachineModel::a100() {
  return {.matmulFlops = 250e12,
          .processors = 108,
          .convolutionFlops = 220e12,
          .attentionFlops = 120e12,
          .bandwidth = 1.7e12,
          .secondsPerRandom = 1.5e-12,
          .secondsPerCall = 2.5e-6,
          .linkLatency = 10e-6,
          .linkBandwidth = 250e9,
          .hostRanks = 8,
          .networkLatency = 15e-6,
          .networkBandwidth = 22e9,
          .hostMemory = 2e12 / 8,
          .memory = 80e9};
}

MachineModel MachineModel::v100() {
  return {.matmulFlops = 98e12,
          .processors = 80,
          .convolutionFlops = 76e12,
          .attentionFlops = 28e12,
          .bandwidth = 750e9,
          .secondsPerRandom = 2e-12,
          .secondsPerCall = 3e-6,
          .linkLatency = 10e-6,
          .linkBandwidth = 22e9,
          .hostRanks = 8,
          .networkLatency = 15e-6,
          .networkBandwidth = 5.6e9,
          .hostBandwidth = 12e9, // PCIe 3.0, 16 lanes: 15.8 GB/s.
          .hostMemory = 512e9 / 8,
          .memory = 32e9};
}

MachineModel MachineModel::p100() {
  return {.matmulFlops = 7.3e12,
          .processors = 56,
          .convolutionFlops = 3.5e12,
          .attentionFlops = 2.1e12,
          .bandwidth = 610e9,
          .secondsPerRandom = 4e-12,
          .secondsPerCall = 4e-6,
          .linkLatency = 15e-6,
          .linkBandwidth = 11e9,
          .hostRanks = 8,
          .networkLatency = 50e-6,
          .networkBandwidth = 1.1e9,
          .hostBandwidth = 12e9, // PCIe 3.0, 16 lanes: 15.8 GB/s.
          .memory = 16e9};
}

MachineModel MachineModel::p40() {
  MachineModel machine = p100();
  machine.matmulFlops = 9.3e12;
  machine.processors = 30;
  machine.convolutionFlops = 4.4e12;
  machine.attentionFlops = 2.6e12;
  machine.bandwidth = 290e9;
  machine.memory = 24e9;
  return machine;
}

MachineModel MachineModel::cpuCluster() {
  MachineModel machine;
  machine.hostRanks = 16;
  machine.networkLatency = 20e-6;
  machine.networkBandwidth = 12.5e9 / 16;
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
    {"h200-bf16", [] { return MachineModel::h200(); }},
    {"a100-bf16", [] { return MachineModel::a100(); }},
    {"v100-f16", [] { return MachineModel::v100(); }},
    {"p100-f32", [] { return MachineModel::p100(); }},
    {"p40-f32", [] { return MachineModel::p40(); }},
    {"cpu-cluster", [] { return MachineModel::cpuCluster(); }},
};

std::optional<MachineModel> MachineModel::named(StringRef name) {
  for (const NamedMachine &machine : machines)
    if (machine.name == name)
      return machine.make();
  return std::nullopt;
}

/// Of a name that may leave the precision out.
static std::optional<MachineModel> machineOfFamily(StringRef name,
                                                   Precision precision) {
  if (std::optional<MachineModel> exact = MachineModel::named(name))
    return exact;
  llvm::SmallVector<const NamedMachine *> known;
  for (const NamedMachine &machine : machines) {
    auto [family, own] = machine.name.rsplit('-');
    if (family == name && own == nameOf(precision))
      return machine.make();
    if (family == name)
      known.push_back(&machine);
  }
  if (known.size() != 1)
    return std::nullopt;
  return known.front()->make();
}

std::optional<MachineModel> MachineModel::named(StringRef name,
                                                Precision precision) {
  if (std::optional<MachineModel> machine = machineOfFamily(name, precision))
    return machine;
  auto [family, digits] = name.rsplit('x');
  unsigned ranks = 0;
  if (digits.getAsInteger(10, ranks) || ranks == 0 ||
      ranks > OtherRanks::mostPlaces)
    return std::nullopt;
  std::optional<MachineModel> machine = machineOfFamily(family, precision);
  if (machine)
    machine->hostRanks = ranks;
  return machine;
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
       "large matrix products", /*isOfRank=*/true},
      {"processors", &MachineModel::processors, "",
       "processors that share a product, tile by tile", /*isOfRank=*/false,
       /*isCount=*/true, /*isOptional=*/true},
      {"convolution_flops", &MachineModel::convolutionFlops, "FLOP/s",
       "convolutions", /*isOfRank=*/true},
      {"attention_flops", &MachineModel::attentionFlops, "FLOP/s",
       "attention's products, with a softmax between them", /*isOfRank=*/true},
      {"bandwidth", &MachineModel::bandwidth, "B/s",
       "what a pointwise kernel reads and writes", /*isOfRank=*/true},
      {"seconds_per_random", &MachineModel::secondsPerRandom, "s",
       "a random number of a dropout", /*isOfRank=*/true},
      {"seconds_per_call", &MachineModel::secondsPerCall, "s",
       "a call, whatever it does", /*isOfRank=*/true},
      {"link_latency", &MachineModel::linkLatency, "s",
       "a message between ranks of a host, whatever it carries"},
      {"link_bandwidth", &MachineModel::linkBandwidth, "B/s",
       "what such a message carries"},
      {"host_ranks", &MachineModel::hostRanks, "", "ranks of one host",
       /*isOfRank=*/false, /*isCount=*/true},
      {"network_latency", &MachineModel::networkLatency, "s",
       "a message between hosts, whatever it carries"},
      {"network_bandwidth", &MachineModel::networkBandwidth, "B/s",
       "what such a message carries, of a rank's share"},
      {"host_bandwidth", &MachineModel::hostBandwidth, "B/s",
       "a copy from a GPU to its host's memory, or back", /*isOfRank=*/false,
       /*isCount=*/false, /*isOptional=*/true},
      {"host_memory", &MachineModel::hostMemory, "B",
       "what a rank has of its host's memory for stashes", /*isOfRank=*/false,
       /*isCount=*/false, /*isOptional=*/true},
      {"memory", &MachineModel::memory, "B", "what a rank has for its arena",
       /*isOfRank=*/true, /*isCount=*/false, /*isOptional=*/true}};
  return figures;
}

const MachineFigure *findMachineFigure(StringRef name) {
  const auto *found =
      llvm::find_if(machineFigures(), [&](const MachineFigure &figure) {
        return figure.name == name;
      });
  return found == machineFigures().end() ? nullptr : found;
}

double MachineFigure::better(double a, double b) const {
  return unit == "s" ? std::min(a, b) : std::max(a, b);
}

double MachineFigure::worse(double a, double b) const {
  return unit == "s" ? std::max(a, b) : std::min(a, b);
}

MachineModel MachineModel::ofRank(int64_t rank, int64_t ranks,
                                  int64_t replicas) const {
  MachineModel usual;
  for (const MachineFigure &figure : machineFigures())
    usual.*figure.place = this->*figure.place;
  // Of the copies, which stand at places rank, ranks + rank, ..., those that
  // are not like the rest.
  int64_t unusual = 0;
  std::optional<MachineModel> worst;
  auto add = [&](const MachineModel &own) {
    if (!worst)
      worst = own;
    for (const MachineFigure &figure : machineFigures())
      (*worst).*figure.place =
          figure.worse((*worst).*figure.place, own.*figure.place);
  };
  for (const OtherRanks &some : others) {
    const int64_t from =
        std::max<int64_t>(0, (some.first - rank + ranks - 1) / ranks);
    const int64_t to = some.last < rank
                           ? -1
                           : std::min(replicas - 1, (some.last - rank) / ranks);
    if (from > to)
      continue;
    unusual += to - from + 1;
    MachineModel own = usual;
    for (auto [figure, number] : some.figures)
      own.*figure->place = number;
    add(own);
  }
  if (unusual < replicas)
    add(usual);
  return worst.value_or(usual);
}

MachineModel MachineModel::ofBestRank() const {
  MachineModel best;
  for (const MachineFigure &figure : machineFigures())
    best.*figure.place = this->*figure.place;
  for (const OtherRanks &some : others)
    for (auto [figure, number] : some.figures)
      best.*figure->place = figure->better(best.*figure->place, number);
  return best;
}

int64_t countCores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace pipewright
