//===- GpuPlatform.cpp - Which GPU each rank takes ------------------------===//

#include "runtime/cuda/GpuPlatform.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/LocalLinks.h"
#include "runtime/cuda/NcclLinks.h"
#include "runtime/train/Progress.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <unistd.h>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

static std::string gpusText(int64_t count) {
  return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

/// The GPUs that may be used, in order.
static std::vector<int64_t> usableGpus(int64_t available,
                                       const Options &options) {
  std::vector<int64_t> usable = options.gpus;
  if (usable.empty()) {
    usable.resize(available);
    std::iota(usable.begin(), usable.end(), 0);
  }
  for (int64_t gpu : usable)
    if (gpu >= available)
      fail("--gpus names GPU ", gpu, ", but the CUDA driver shows ",
           gpusText(available), ", numbered from 0");
  return usable;
}

GpuChoice pipewright::runtime::chooseGpus(int64_t ranks, int64_t ranksHere,
                                          bool processes, int64_t available,
                                          const Options &options) {
  const std::vector<int64_t> usable = usableGpus(available, options);
  const int64_t count = usable.size();
  GpuChoice choice;
  const bool enough = count >= ranksHere;
  choice.links = options.links         ? *options.links
                 : processes           ? LinkKind::Nccl
                 : enough && ranks > 1 ? LinkKind::Nccl
                                       : LinkKind::Local;
  if (choice.links == LinkKind::Local) {
    if (processes && ranks > 1)
      fail("--transport cuda-local expects all ranks in one process: start the "
           "program by itself, without mpirun or torchrun");
    // Neighbours share a GPU rather than ranks that are far apart.
    for (int64_t i = 0; i < ranksHere; ++i)
      choice.gpus.push_back(usable[i * std::min(count, ranksHere) / ranksHere]);
    return choice;
  }
  if (enough) {
    choice.gpus.assign(usable.begin(), usable.begin() + ranksHere);
  } else if (processes && count == 1 && options.gpus.empty()) {
    // A launcher that shows each process its own GPU only; two processes on
    // the same one are found out later.
    choice.gpus.assign(ranksHere, usable[0]);
  } else {
    fail("too few GPUs: --transport nccl needs one for each of the ", ranksHere,
         " ranks on this host, but there ", count == 1 ? "is " : "are ",
         gpusText(count), options.gpus.empty() ? "" : " in --gpus",
         processes ? "; start fewer ranks here"
                   : "; --transport cuda-local lets ranks share a GPU");
  }
  return choice;
}

std::vector<std::pair<int64_t, int64_t>>
pipewright::runtime::linksOf(const Program &program) {
  std::vector<std::pair<int64_t, int64_t>> links;
  for (size_t from = 0; from < program.ranks.size(); ++from)
    for (int64_t to : program.ranks[from].sendsTo)
      links.emplace_back(from, to);
  return links;
}

//===----------------------------------------------------------------------===//
// The platform
//===----------------------------------------------------------------------===//

namespace {

class GpuPlatform : public Platform {
public:
  /// `firstRank` is the one that takes the first of the GPUs.
  GpuPlatform(const Program &program, const Options &options, GpuChoice choice,
              std::vector<int64_t> ranks);

  std::unique_ptr<Rank> createRank(Transport &transport) override;
  std::string describe() const override;

  const Device &deviceOf(size_t place) const { return *devices[place]; }

private:
  void checkMemory() const;

  const Program &program;
  const Options &options;
  const LinkKind links;
  /// The ranks of this process, and the GPU of each.
  const std::vector<int64_t> ranks;
  std::vector<std::shared_ptr<Device>> devices;
  LocalWorld world;
};

} // namespace

GpuPlatform::GpuPlatform(const Program &program, const Options &options,
                         GpuChoice choice, std::vector<int64_t> ranks)
    : program(program), options(options), links(choice.links),
      ranks(std::move(ranks)), world(program.ranks.size()) {
  for (int64_t gpu : choice.gpus)
    devices.push_back(Device::open(gpu));
  checkMemory();
}

/// What libraries take beside the arenas is known only when they have taken
/// it. So little is certain: the workspace that products are offered, and the
/// buffers of each end of a link, of the size that NCCL has by default.
static int64_t besideArena(const Program &program, int64_t rank,
                           LinkKind links) {
  constexpr int64_t workspace = int64_t{32} << 20, linkEnd = int64_t{16} << 20;
  int64_t bytes = workspace;
  if (links == LinkKind::Nccl)
    for (const auto &[from, to] : linksOf(program))
      bytes += from == rank || to == rank ? linkEnd : 0;
  return bytes;
}

/// Before any rank takes its arena: all that share a GPU must fit.
void GpuPlatform::checkMemory() const {
  for (size_t i = 0; i < ranks.size(); ++i) {
    int64_t needed = 0, beside = 0;
    std::string users;
    bool isFirst = true;
    for (size_t j = 0; j < ranks.size(); ++j) {
      if (devices[j] != devices[i])
        continue;
      isFirst &= j >= i;
      needed += program.ranks[ranks[j]].arenaBytes;
      beside += besideArena(program, ranks[j], links);
      users += (users.empty() ? "" : ", ") + std::to_string(ranks[j]);
    }
    if (!isFirst)
      continue;
    const Device &device = *devices[i];
    const auto [free, total] = device.memory();
    if (needed + beside > free)
      fail("too little memory on GPU ", device.number(), " (", device.name(),
           "): the plan needs ", groupedText(needed), " bytes there (rank ",
           users, "), and libraries about ", groupedText(beside),
           " beside, but ", groupedText(free), " of ", groupedText(total),
           " bytes are free; compile for more ranks, with smaller "
           "micro-batches or with --remat");
  }
}

std::unique_ptr<Rank> GpuPlatform::createRank(Transport &transport) {
  const int64_t number = transport.rank();
  const size_t place =
      std::find(ranks.begin(), ranks.end(), number) - ranks.begin();
  const std::shared_ptr<Device> &device = devices.at(place);
  device->makeCurrent();
  // Links take over the deadline. Weights, which come next, take longer.
  const double patience = transport.deadline();
  transport.setDeadline(options.timeout);
  std::unique_ptr<DeviceLinks> connection =
      links == LinkKind::Nccl ? createNcclLinks(transport)
                              : createLocalLinks(world, transport);
  connection->connect(linksOf(program));
  transport.setDeadline(patience);
  const DeviceSettings settings = {.graphs = options.graphs,
                                   .chaos = options.chaos,
                                   .timeout = options.timeout,
                                   .steps = options.steps > 0,
                                   .evaluations = !options.evalData.empty() ||
                                                  !options.predict.empty() ||
                                                  !options.guess.empty(),
                                   .attention = options.attention};
  auto rank = std::make_unique<DeviceRank>(program, number, transport, device,
                                           std::move(connection), settings);
  return rank;
}

std::string GpuPlatform::describe() const {
  // Cards of the same name are named once.
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  for (const std::shared_ptr<Device> &device : devices) {
    if (std::find(numbers.begin(), numbers.end(), device->number()) ==
        numbers.end())
      numbers.push_back(device->number());
    if (std::find(names.begin(), names.end(), device->name()) == names.end())
      names.push_back(device->name());
  }
  std::string text = numbers.size() == 1 ? "GPU" : "GPUs";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : " ") + std::to_string(numbers[i]);
  for (size_t i = 0; i < names.size(); ++i)
    text += (i ? ", " : " (") + names[i];
  text += "; driver for CUDA " + cudaVersionText(cudaDriver().version) + ")";
  if (program.ranks.size() > 1)
    text += links == LinkKind::Nccl ? " over nccl" : " over cuda-local";
  return text;
}

//===----------------------------------------------------------------------===//
// Threads and processes
//===----------------------------------------------------------------------===//

std::unique_ptr<Platform>
pipewright::runtime::createGpuThreads(const Program &program,
                                      const Options &options) {
  const int64_t count = program.ranks.size();
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<GpuPlatform>(
      program, options,
      chooseGpus(count, count, false, Device::count(), options), ranks);
}

/// Two processes on one GPU of a host cannot be linked by NCCL.
static void checkDistinct(Transport &transport, const Device &device) {
  char bus[64] = "";
  PIPEWRIGHT_CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, device.handle()));
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  // Tells hosts of the same name apart.
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const uint64_t own = std::hash<std::string>()(host + boot + bus);
  const std::vector<uint64_t> all = gatherToAll(transport, own);
  for (int64_t rank = 0; rank < transport.size(); ++rank)
    if (rank != transport.rank() && all[rank] == own)
      fail("ranks ", std::min(rank, transport.rank()), " and ",
           std::max(rank, transport.rank()), " are both on GPU ", bus,
           " of a host: each process needs one of its own; ranks that share a "
           "GPU must be threads of one process (--transport cuda-local)");
}

std::unique_ptr<Platform>
pipewright::runtime::createGpuProcess(const Program &program,
                                      const Options &options, HostPlace place,
                                      Transport &transport) {
  GpuChoice choice = chooseGpus(program.ranks.size(), place.count, true,
                                Device::count(), options);
  choice.gpus = {choice.gpus.at(place.index)};
  auto platform =
      std::make_unique<GpuPlatform>(program, options, std::move(choice),
                                    std::vector<int64_t>{transport.rank()});
  checkDistinct(transport, platform->deviceOf(0));
  return platform;
}
