//===- CudaPlatform.cpp - Which GPU each rank takes -----------------------===//

#include "runtime/cuda/CudaPlatform.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/cuda/CudaDryRun.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/Environment.h"
#include "runtime/cuda/GpuMemory.h"
#include "runtime/cuda/IpcLinks.h"
#include "runtime/cuda/LinkChoice.h"
#include "runtime/cuda/LocalGroups.h"
#include "runtime/cuda/LocalLinks.h"
#include "runtime/cuda/MixedLinks.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/NcclLinks.h"
#include "runtime/cuda/kernels/MatmulAlgorithms.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Gather.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <unistd.h>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static std::vector<int64_t> parseGpus(const std::string &text) {
  std::vector<int64_t> numbers;
  std::stringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    numbers.push_back(parseInteger("--gpus", item, 0));
    if (std::count(numbers.begin(), numbers.end(), numbers.back()) > 1)
      fail("--gpus names ", numbers.back(), " twice");
  }
  return numbers;
}

static LinkKind parseLinks(const std::string &text) {
  const std::optional<LinkKind> kind = findLinkKind(text);
  if (!kind)
    fail("--transport expects ", linkKindNames(), ", but got '", text, "'");
  return *kind;
}

static AttentionBy parseAttention(const std::string &text) {
  if (text != "auto" && text != "cudnn" && text != "own")
    fail("--attention expects auto, cudnn or own, but got '", text, "'");
  return text == "auto"    ? AttentionBy::Auto
         : text == "cudnn" ? AttentionBy::Cudnn
                           : AttentionBy::Own;
}

static void parseFileName(const std::string &text) {
  if (text.empty())
    fail("--algorithms expects the name of a file");
}

CudaOptions CudaOptions::of(const RunSettings &settings) {
  CudaOptions options;
  for (const auto &[name, text] : settings.own) {
    if (name == "--transport")
      options.links = parseLinks(text);
    else if (name == "--gpus")
      options.gpus = parseGpus(text);
    else if (name == "--attention")
      options.attention = parseAttention(text);
    else if (name == "--algorithms")
      options.algorithms = text;
    else if (name == "--no-graphs")
      options.graphs = false;
    else if (name == "--chaos")
      options.chaos = parseInteger("--chaos", text, 1);
  }
  return options;
}

static std::vector<PlatformOption> gpuOptions() {
  using Text = const std::string &;
  return {{"--transport", "NAME",
           "cuda-local (threads; may share a GPU), cuda-ipc or nccl",
           [](Text t) { parseLinks(t); }},
          {"--gpus", "LIST", "numbers of the GPUs to use, as 0,2 (all)",
           [](Text t) { parseGpus(t); }, /*isOwn=*/true},
          {"--attention", "BY",
           "cudnn, own (kernels), or auto: cuDNN if it can",
           [](Text t) { parseAttention(t); }},
          {"--algorithms", "FILE",
           "of products: those of FILE, or the fastest, and FILE keeps them",
           [](Text t) { parseFileName(t); }},
          {"--no-graphs", "", "launch every kernel anew, without CUDA graphs",
           [](Text) {}, /*isOwn=*/true},
          {"--profile", "N", "table of what calls took in the last N steps",
           [](Text t) { parseInteger("--profile", t, 1); }},
          {"--chaos", "SEED", "random delays, to find events that are missing",
           [](Text t) { parseInteger("--chaos", t, 1); }, /*isOwn=*/true}};
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

static std::string gpusText(int64_t count) {
  return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

/// The GPUs that may be used, in order.
static std::vector<int64_t> usableGpus(int64_t available,
                                       const CudaOptions &options) {
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

/// Neighbours share a GPU rather than ranks that are far apart.
static std::vector<int64_t> spread(const std::vector<int64_t> &usable,
                                   int64_t ranks) {
  const int64_t count = usable.size();
  std::vector<int64_t> gpus;
  for (int64_t i = 0; i < ranks; ++i)
    gpus.push_back(usable[i * std::min(count, ranks) / ranks]);
  return gpus;
}

GpuChoice pipewright::runtime::chooseGpus(int64_t ranks, int64_t ranksHere,
                                          bool processes, int64_t available,
                                          const CudaOptions &options,
                                          const CanBeLocal &canBeLocal) {
  const std::vector<int64_t> usable = usableGpus(available, options);
  const int64_t count = usable.size();
  GpuChoice choice;
  const bool enough = count >= ranksHere;
  choice.gpus = spread(usable, ranksHere);
  const bool mustBeNccl =
      !processes && enough && ranks > 1 && !canBeLocal(choice.gpus);
  choice.links = options.links ? *options.links
                 : ranks == 1  ? LinkKind::Local
                 : processes   ? LinkKind::Ipc
                 : mustBeNccl  ? LinkKind::Nccl
                               : LinkKind::Local;
  if (choice.links == LinkKind::Ipc && !processes && ranks > 1)
    fail("--transport cuda-ipc expects a process for each rank: start the "
         "program with mpirun or torchrun; threads have cuda-local");
  if (choice.links == LinkKind::Local) {
    if (processes && ranks > 1)
      fail("--transport cuda-local expects all ranks in one process: start the "
           "program by itself, without mpirun or torchrun");
    return choice;
  }
  if (enough) {
    choice.gpus.assign(usable.begin(), usable.begin() + ranksHere);
  } else if (processes && count == 1 && options.gpus.empty()) {
    // A launcher that shows each process its own GPU only; two processes on
    // the same one are found out later.
    choice.gpus.assign(ranksHere, usable[0]);
  } else {
    fail("too few GPUs: ",
         processes ? "processes need" : "--transport nccl needs",
         " one for each of the ", ranksHere, " ranks on this host, but there ",
         count == 1 ? "is " : "are ", gpusText(count),
         options.gpus.empty() ? "" : " in --gpus",
         processes ? "; start fewer ranks here"
                   : "; --transport cuda-local lets ranks share a GPU");
  }
  return choice;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

namespace {

class CudaRanks final : public RankFactory {
public:
  /// `ranks` are those of this process, by their numbers among those of all
  /// replicas; each takes one of the GPUs. `isOneHost`: all of the run are on
  /// this host.
  CudaRanks(const Program &program, const RunSettings &settings,
            const std::vector<int64_t> &gpus, LinkChoice links,
            std::vector<int64_t> ranks, bool isOneHost);

  std::unique_ptr<Worker> createRank(Transport &transport) override;
  std::string describe() const override;

  /// Said by the first rank of this process.
  void remark(const std::string &lines) { remarks = lines; }

private:
  void checkMemory();

  const Program &program;
  const RunSettings settings;
  const LinkChoice links;
  const bool isOneHost;
  std::string remarks;
  /// The ranks of this process, and the GPU of each.
  const std::vector<int64_t> ranks;
  std::vector<std::shared_ptr<Device>> devices;
  LocalWorld world;
  std::shared_ptr<MatmulAlgorithms> algorithms;
  /// There is memory for the inputs of a step beside the plan's.
  bool inputsAhead = true;
};

} // namespace

CudaRanks::CudaRanks(const Program &program, const RunSettings &settings,
                     const std::vector<int64_t> &gpus, LinkChoice links,
                     std::vector<int64_t> ranks, bool isOneHost)
    : program(program), settings(settings), links(std::move(links)),
      isOneHost(isOneHost), ranks(std::move(ranks)),
      world(program.mesh().size()) {
  for (int64_t gpu : gpus)
    devices.push_back(Device::open(gpu));
  checkMemory();
  const std::string file = CudaOptions::of(settings).algorithms;
  if (file.empty())
    return;
  algorithms = std::make_shared<MatmulAlgorithms>(file, this->ranks.size());
  if (algorithms->isMeasuring() &&
      static_cast<int64_t>(this->ranks.size()) < program.mesh().size())
    fail("--algorithms: there is no '", file,
         "', and only one process can make it: run all ranks in one first "
         "(--transport cuda-local)");
}

/// Before any rank takes its arena: all that share a GPU must fit. What is left
/// decides whether inputs are copied ahead.
void CudaRanks::checkMemory() {
  for (size_t i = 0; i < ranks.size(); ++i) {
    GpuMemory needed;
    std::string users;
    bool isFirst = true;
    for (size_t j = 0; j < ranks.size(); ++j) {
      if (devices[j] != devices[i])
        continue;
      isFirst &= j >= i;
      needed += gpuMemoryOf(program, ranks[j], links, isOneHost);
      users += (users.empty() ? "" : ", ") + std::to_string(ranks[j]);
    }
    if (!isFirst)
      continue;
    const Device &device = *devices[i];
    const auto [free, total] = device.memory();
    if (needed.arenas + needed.libraries() > free)
      fail("too little memory on GPU ", device.number(), " (", device.name(),
           "): the plan needs ", groupedText(needed.arenas),
           " bytes there (rank ", users, "), and libraries about ",
           groupedText(needed.libraries()), " beside, but ", groupedText(free),
           " of ", groupedText(total),
           " bytes are free; compile for more ranks, with smaller "
           "micro-batches or with --remat");
    inputsAhead &= needed.total() <= free;
  }
}

std::unique_ptr<Worker> CudaRanks::createRank(Transport &transport) {
  const int64_t number = transport.rank();
  const size_t place =
      std::find(ranks.begin(), ranks.end(), number) - ranks.begin();
  const std::shared_ptr<Device> &device = devices.at(place);
  device->makeCurrent();
  // Links take over the deadline. Weights, which come next, take longer.
  const double patience = transport.deadline();
  transport.setDeadline(settings.timeout);
  std::unique_ptr<DeviceLinks> connection =
      createLinks(links, number, [&](LinkKind kind) {
        switch (kind) {
        case LinkKind::Local:
          return createLocalLinks(world, transport);
        case LinkKind::Ipc:
          return createIpcLinks(transport);
        case LinkKind::Nccl:
          break;
        }
        return createNcclLinks(transport);
      });
  connection->connect(links.links);
  if (!links.groups.empty())
    connection->connectGroups(links.groups);
  transport.setDeadline(patience);
  const CudaOptions options = CudaOptions::of(settings);
  const DeviceSettings forDevice = {.graphs = options.graphs,
                                    .chaos = options.chaos,
                                    .timeout = settings.timeout,
                                    .steps = settings.trains,
                                    .evaluations = settings.evaluates,
                                    .inputsAhead = inputsAhead,
                                    .attention = options.attention,
                                    .algorithms = algorithms};
  auto rank = std::make_unique<DeviceRank>(program, transport, device,
                                           std::move(connection), forDevice);
  if (!remarks.empty() && place == 0)
    rank->remark(remarks);
  if (links.uses(LinkKind::Nccl) && ranks.size() > 1)
    if (const std::string remark = ncclRemark(ncclVersion()); !remark.empty())
      rank->remark(remark);
  return rank;
}

std::string CudaRanks::describe() const {
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
  if (program.mesh().size() == 1)
    return text;
  std::string kinds;
  for (const LinkKindFacts &facts : allLinkKinds)
    if (links.uses(facts.kind))
      kinds +=
          (kinds.empty() ? " over " : " and ") + std::string(facts.name) +
          (facts.kind == LinkKind::Nccl ? " " + ncclVersionText(ncclVersion())
                                        : "");
  return text + kinds;
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

//===----------------------------------------------------------------------===//
// The platform
//===----------------------------------------------------------------------===//

namespace {

class CudaPlatform final : public Platform {
public:
  const char *name() const override { return "cuda"; }
  const char *rankWord() const override { return "GPU rank"; }
  std::vector<PlatformOption> options() const override { return gpuOptions(); }
  const char *timeoutHelp() const override {
    return "seconds until a wait for another rank fails (60)";
  }
  double timeout() const override { return 60; }
  /// In the driver.
  bool mayHang() const override { return true; }
  bool hasDeadlines() const override { return true; }

  void prepareEnvironment(const Program &program,
                          const RunSettings &settings) const override {
    setGpuEnvironment(program.mesh().size() > 1 &&
                      CudaOptions::of(settings).links != LinkKind::Local);
  }

  std::unique_ptr<RankFactory>
  createThreads(const Program &program,
                const RunSettings &settings) const override;
  std::unique_ptr<RankFactory>
  createProcess(const Program &program, const RunSettings &settings,
                RankOnHost place, Transport &transport) const override;

  std::string besideArena(double libraryBytes, double aheadBytes,
                          double pinnedBytes, double graphs) const override;
  Lines needs(const Program &program,
              const RunSettings &settings) const override {
    return gpuLines(program, settings);
  }
  std::string describeRank(const Program &program,
                           int64_t number) const override {
    return streamsText(program, number);
  }
  Lines besideArenas() const override {
    return {{"beside", "all that, known once the program has started: "
                       "workspace of convolutions and attention, what the "
                       "driver and libraries keep for themselves, pinned "
                       "memory of the host for inputs; whose kernels compute "
                       "attention"}};
  }
};

} // namespace

const Platform &pipewright::runtime::cudaPlatform() {
  static const CudaPlatform platform;
  return platform;
}

std::unique_ptr<RankFactory>
CudaPlatform::createThreads(const Program &program,
                            const RunSettings &settings) const {
  const int64_t count = program.mesh().size();
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  const GpuChoice choice = chooseGpus(
      count, count, false, Device::count(), CudaOptions::of(settings),
      [&](const std::vector<int64_t> &gpus) {
        return fitsLocalGroups(program) && Device::reachEachOther(gpus);
      });
  return std::make_unique<CudaRanks>(
      program, settings, choice.gpus,
      planLinks(program, choice.links, std::vector<int64_t>(count)), ranks,
      /*isOneHost=*/true);
}

std::unique_ptr<RankFactory>
CudaPlatform::createProcess(const Program &program, const RunSettings &settings,
                            RankOnHost place, Transport &transport) const {
  const CudaOptions options = CudaOptions::of(settings);
  const GpuChoice choice =
      chooseGpus(program.mesh().size(), place.count, true, Device::count(),
                 options, [](const auto &) { return false; });
  const int64_t gpu = choice.gpus.at(place.index);
  const std::shared_ptr<Device> device = Device::open(gpu);
  checkDistinct(transport, *device);
  device->makeCurrent();
  std::string remarks;
  const LinkChoice links =
      chooseLinks(program, choice.links, options.links == LinkKind::Ipc,
                  *device, transport, remarks);
  auto ranks = std::make_unique<CudaRanks>(
      program, settings, std::vector<int64_t>{gpu}, links,
      std::vector<int64_t>{transport.rank()}, place.count == transport.size());
  if (transport.rank() == 0 && links.uses(LinkKind::Ipc) &&
      links.uses(LinkKind::Nccl))
    remarks = linkLines(links) + (remarks.empty() ? "" : "\n" + remarks);
  ranks->remark(remarks);
  return ranks;
}

//===----------------------------------------------------------------------===//
// What people read
//===----------------------------------------------------------------------===//

std::string CudaPlatform::besideArena(double libraryBytes, double aheadBytes,
                                      double pinnedBytes, double graphs) const {
  char count[32];
  std::snprintf(count, sizeof count, "%.0f", graphs);
  return "libraries " + bytesText(libraryBytes) + ", inputs of the next step " +
         bytesText(aheadBytes) + ", pinned on the host " +
         bytesText(pinnedBytes) + "; " + count + " CUDA graphs";
}
