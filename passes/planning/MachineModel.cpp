//===- MachineModel.cpp - What a rank computes with -----------------------===//
//
// Machines by name are in NamedMachines.cpp, that at hand in MachineProbe.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <thread>

using llvm::StringRef;

namespace pipewright {

llvm::ArrayRef<Precision> allPrecisions() {
  static constexpr Precision all[] = {Precision::F32, Precision::Tf32,
                                      Precision::BF16};
  return all;
}

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

MachineModel MachineModel::ofRank(int64_t rank,
                                  const runtime::Mesh &mesh) const {
  MachineModel usual;
  for (const MachineFigure &figure : machineFigures())
    usual.*figure.place = this->*figure.place;
  // Of the copies, those that are not like the rest.
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
    int64_t copies = 0;
    for (int64_t process = some.first;
         process <= std::min(some.last, mesh.size() - 1); ++process)
      copies += mesh.placeOf(process).position == rank;
    if (copies == 0)
      continue;
    unusual += copies;
    MachineModel own = usual;
    for (auto [figure, number] : some.figures)
      own.*figure->place = number;
    add(own);
  }
  if (unusual < mesh.data)
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

bool MachineModel::isLike(const MachineModel &other) const {
  return llvm::all_of(machineFigures(), [&](const MachineFigure &figure) {
    return this->*figure.place == other.*figure.place;
  });
}

int64_t countCores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace pipewright
