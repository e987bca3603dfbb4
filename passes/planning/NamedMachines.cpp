//===- NamedMachines.cpp - Machines that are known by name ----------------===//
//
// See NamedMachines.h.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/NamedMachines.h"

#include "support/Text.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/ErrorHandling.h"

using llvm::StringRef;

namespace pipewright {

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

namespace {

/// Operations per second of a GPU.
struct Rates {
  double products, convolutions, attention;
};

} // namespace

/// Of a precision of which the peak alone is known: products, convolutions and
/// attention reach the shares of it that they do on an H100. Attention in f32
/// or tf32 uses no tensor cores, so its peak is that of f32.
static Rates ratesOf(double peak, double peakOfF32, Precision precision) {
  switch (precision) {
  case Precision::F32:
    return {0.75 * peak, 0.375 * peak, 0.22 * peakOfF32};
  case Precision::Tf32:
    return {0.7 * peak, 0.35 * peak, 0.22 * peakOfF32};
  case Precision::BF16:
    return {0.79 * peak, 0.61 * peak, 0.22 * peak};
  }
  llvm_unreachable("all precisions are listed");
}

static void setRates(MachineModel &machine, Rates rates) {
  machine.matmulFlops = rates.products;
  machine.convolutionFlops = rates.convolutions;
  machine.attentionFlops = rates.attention;
}

/// Eight in a host of 2 TB, joined by NVLink, and an adapter of 400 Gb/s for
/// each (DGX H100's data sheet). In bf16 what large products and attention
/// reach in a step of GPT-2 124M, and convolutions in one of VGG19, on an H200,
/// whose processor is the same (doc/gpu-results.md); the rest from published
/// figures.
static MachineModel h100(Precision precision) {
  MachineModel machine;
  setRates(machine, precision == Precision::F32 ? Rates{50e12, 25e12, 15e12}
                    : precision == Precision::Tf32
                        ? Rates{350e12, 175e12, 15e12}
                        : Rates{780e12, 600e12, 218e12});
  machine.processors = 132;
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

/// An H100 with memory of 4.8 TB/s (data sheet), of which kernels reach the
/// same share.
static MachineModel h200(Precision precision) {
  MachineModel machine = h100(precision);
  machine.bandwidth = 4e12;
  machine.memory = 141e9;
  return machine;
}

/// Peaks of 19.5, 156 and 312 TFLOP/s, 2 TB/s, 300 GB/s by NVLink: shares of
/// these as large products and kernels usually reach them; eight in a host of
/// 2 TB, an adapter of 200 Gb/s for each (DGX A100's data sheet).
static MachineModel a100(Precision precision) {
  MachineModel machine;
  setRates(machine,
           precision == Precision::F32    ? ratesOf(19.5e12, 19.5e12, precision)
           : precision == Precision::Tf32 ? ratesOf(156e12, 19.5e12, precision)
                                          : Rates{250e12, 220e12, 120e12});
  machine.processors = 108;
  machine.bandwidth = 1.7e12;
  machine.secondsPerRandom = 1.5e-12;
  machine.secondsPerCall = 2.5e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 250e9;
  machine.hostRanks = 8;
  machine.networkLatency = 15e-6;
  machine.networkBandwidth = 22e9;
  machine.hostMemory = 2e12 / 8;
  machine.memory = 80e9;
  return machine;
}

/// 15.7 TFLOP/s in f32, 125 in 16 bits, which are float16's on this GPU, 900
/// GB/s (data sheet); eight in a DGX-1 with 512 GB that share four adapters of
/// 100 Gb/s, an NVLink of 25 GB/s between two (white paper). The machine of
/// J. Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2022.
static MachineModel v100(Precision precision) {
  MachineModel machine;
  setRates(machine, precision == Precision::F32
                        ? ratesOf(15.7e12, 15.7e12, precision)
                        : Rates{98e12, 76e12, 28e12});
  machine.processors = 80;
  machine.bandwidth = 750e9;
  machine.secondsPerRandom = 2e-12;
  machine.secondsPerCall = 3e-6;
  machine.linkLatency = 10e-6;
  machine.linkBandwidth = 22e9;
  machine.hostRanks = 8;
  machine.networkLatency = 15e-6;
  machine.networkBandwidth = 5.6e9;
  machine.hostBandwidth = 12e9; // PCIe 3.0, 16 lanes: 15.8 GB/s.
  machine.hostMemory = 512e9 / 8;
  machine.memory = 32e9;
  return machine;
}

/// 9.3 TFLOP/s, 732 GB/s (data sheet of the one on PCIe); eight in a host,
/// without NVLink, and 10 Gb/s. The GPU of Y. Huang et al., "GPipe", 2019,
/// table 3.
static MachineModel p100(Precision) {
  MachineModel machine;
  setRates(machine, {7.3e12, 3.5e12, 2.1e12});
  machine.processors = 56;
  machine.bandwidth = 610e9;
  machine.secondsPerRandom = 4e-12;
  machine.secondsPerCall = 4e-6;
  machine.linkLatency = 15e-6;
  machine.linkBandwidth = 11e9;
  machine.hostRanks = 8;
  machine.networkLatency = 50e-6;
  machine.networkBandwidth = 1.1e9;
  machine.hostBandwidth = 12e9; // PCIe 3.0, 16 lanes: 15.8 GB/s.
  machine.memory = 16e9;
  return machine;
}

/// 11.8 TFLOP/s, 346 GB/s (data sheet), in hosts like those of P100s; the GPU
/// of C. Kim et al., "torchgpipe", 2020.
static MachineModel p40(Precision precision) {
  MachineModel machine = p100(precision);
  setRates(machine, {9.3e12, 4.4e12, 2.6e12});
  machine.processors = 30;
  machine.bandwidth = 290e9;
  machine.memory = 24e9;
  return machine;
}

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

static MachineModel cpu(Precision) { return MachineModel(); }

static MachineModel cpuCluster(Precision) {
  MachineModel machine;
  machine.hostRanks = 16;
  machine.networkLatency = 20e-6;
  machine.networkBandwidth = 12.5e9 / 16;
  return machine;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

llvm::ArrayRef<NamedMachine> namedMachines() {
  static constexpr Precision f32[] = {Precision::F32};
  static constexpr Precision f32AndBf16[] = {Precision::F32, Precision::BF16};
  static const NamedMachine machines[] = {
      {"cpu", "a core of a CPU of 2020, all in one host", allPrecisions(), cpu},
      {"cpu-cluster", "such cores, 16 in a host with 100 Gb/s", allPrecisions(),
       cpuCluster},
      {"h100",
       "H100 of 80 GB, 8 in a DGX H100 with NVLink, 400 Gb/s each: bf16 as "
       "measured on an H200, else published",
       allPrecisions(), h100},
      {"h200", "H200 of 141 GB, likewise", allPrecisions(), h200},
      {"a100-80gb",
       "A100 of 80 GB, 8 in a DGX A100 with NVLink, 200 Gb/s each: published",
       allPrecisions(), a100},
      {"v100",
       "V100 of 32 GB, 8 in a DGX-1 with NVLink, 50 Gb/s each: published "
       "(bf16: float16's)",
       f32AndBf16, v100},
      {"p100", "P100 of 16 GB, 8 in a host with PCIe, 10 Gb/s each: published",
       f32, p100},
      {"p40", "P40 of 24 GB, likewise", f32, p40},
  };
  return machines;
}

static const NamedMachine *find(StringRef name) {
  llvm::SmallVector<const NamedMachine *> alike;
  for (const NamedMachine &machine : namedMachines()) {
    if (machine.name == name)
      return &machine;
    if (machine.name.split('-').first == name)
      alike.push_back(&machine);
  }
  return alike.size() == 1 ? alike.front() : nullptr;
}

static MachineModels modelsOf(StringRef name) {
  MachineModels models;
  if (const NamedMachine *machine = find(name)) {
    for (Precision precision : machine->precisions)
      models[precision] = machine->make(precision);
    return models;
  }
  auto [family, word] = name.rsplit('-');
  if (const NamedMachine *machine = find(family))
    for (Precision precision : machine->precisions)
      if (nameOf(precision) == word)
        models[precision] = machine->make(precision);
  return models;
}

MachineModels machinesNamed(StringRef name) {
  MachineModels models = modelsOf(name);
  if (!models.empty())
    return models;
  auto [family, digits] = name.rsplit('x');
  unsigned ranks = 0;
  if (digits.getAsInteger(10, ranks) || ranks == 0 ||
      ranks > OtherRanks::mostPlaces)
    return {};
  models = modelsOf(family);
  for (auto &[precision, model] : models)
    model.hostRanks = ranks;
  return models;
}

std::optional<MachineModel> machineNamed(StringRef name) {
  MachineModels models = machinesNamed(name);
  if (models.empty())
    return std::nullopt;
  const MachineModel &first = models.begin()->second;
  for (const auto &[precision, model] : models)
    if (!model.isLike(first))
      return std::nullopt;
  return first;
}

std::string namesOfMachines() {
  return text::listOf(llvm::map_to_vector(
      namedMachines(),
      [](const NamedMachine &machine) -> StringRef { return machine.name; }));
}

} // namespace pipewright
