//===- CudaDryRun.cpp - What --dry-run tells of GPUs ----------------------===//

#include "runtime/cuda/CudaDryRun.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/cuda/CudaPlatform.h"
#include "runtime/cuda/GpuMemory.h"
#include "runtime/cuda/LinkChoice.h"
#include "runtime/cuda/LocalGroups.h"
#include "runtime/cuda/ProcessGroups.h"
#include "runtime/cuda/Rounds.h"
#include "runtime/net/Bootstrap.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace pipewright::runtime;

using Lines = Platform::Lines;

/// More are not listed one by one.
constexpr size_t listedGpus = 4, listedRanks = 4;

//===----------------------------------------------------------------------===//
// Where ranks are
//===----------------------------------------------------------------------===//

namespace {

/// A GPU, and the ranks that share it.
struct GpuUse {
  int64_t host = 0;
  int64_t gpu = 0;
  std::vector<int64_t> ranks;
  GpuMemory memory;
};

/// Which rank is where, as far as can be told before the run.
struct Placement {
  bool processes = false;
  /// Ranks of this host; of others, too, if they have as many.
  int64_t ranksHere = 0;
  LinkChoice links;
  std::vector<GpuUse> gpus;
};

} // namespace

static void addRank(std::vector<GpuUse> &gpus, int64_t host, int64_t gpu,
                    int64_t rank, const GpuMemory &memory) {
  auto use = std::find_if(gpus.begin(), gpus.end(), [&](const GpuUse &known) {
    return known.host == host && known.gpu == gpu;
  });
  if (use == gpus.end())
    use = gpus.insert(gpus.end(), {host, gpu, {}, {}});
  use->ranks.push_back(rank);
  use->memory += memory;
}

static Placement placementOf(const Program &program,
                             const RunSettings &settings) {
  const CudaOptions options = CudaOptions::of(settings);
  const int64_t ranks = program.mesh().size();
  Placement placement;
  placement.processes = findLauncher() != Launcher::None;
  if (placement.processes)
    placement.ranksHere =
        placeByLauncher(environmentRank(), ranks, {0, 0}).count;
  if (placement.ranksHere <= 0)
    placement.ranksHere = ranks;
  int64_t available = placement.ranksHere;
  if (!options.gpus.empty())
    available = 1 + *std::max_element(options.gpus.begin(), options.gpus.end());
  // GPUs are taken to reach each other's memory.
  const GpuChoice choice = chooseGpus(
      ranks, placement.ranksHere, placement.processes, available, options,
      [&](const auto &) { return fitsLocalGroups(program); });
  std::vector<int64_t> hosts;
  for (int64_t rank = 0; rank < ranks; ++rank)
    hosts.push_back(rank / placement.ranksHere);
  placement.links = planLinks(program, choice.links, hosts);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    GpuMemory memory = gpuMemoryOf(program, rank, placement.links,
                                   placement.ranksHere == ranks);
    if (!settings.trains)
      memory.inputsAhead = 0;
    addRank(placement.gpus, hosts[rank],
            choice.gpus[rank % placement.ranksHere], rank, memory);
  }
  return placement;
}

static std::string ranksText(const std::vector<int64_t> &ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > listedRanks && i == 2) {
      text += ", ...";
      i = ranks.size() - 1;
    }
    text += (i ? ", " : "") + processName(ranks[i]);
  }
  return text;
}

static std::string processesText(const Program &program,
                                 const Placement &placement) {
  const int64_t ranks = program.mesh().size();
  if (!placement.processes)
    return ranks == 1 ? "one, on this host"
                      : "one, on this host, with a thread for each rank";
  std::string text = groupedText(ranks) + ", one for each rank; ";
  if (placement.ranksHere == ranks)
    return text + "all on this host";
  return text + groupedText(placement.ranksHere) +
         " on this host; below, each host has as many, in the order of "
         "processes";
}

//===----------------------------------------------------------------------===//
// What GPUs hold
//===----------------------------------------------------------------------===//

static std::string memoryText(const GpuUse &use) {
  std::string parts;
  const auto add = [&](const char *what, int64_t bytes) {
    if (bytes)
      parts += (parts.empty() ? "" : ", ") + std::string(what) + " " +
               bytesText(static_cast<double>(bytes));
  };
  const GpuMemory &memory = use.memory;
  add(use.ranks.size() == 1 ? "arena" : "arenas", memory.arenas);
  add("workspace of products", memory.workspace);
  add("buffers of NCCL", memory.ncclBuffers);
  add("inputs of the next step", memory.inputsAhead);
  return bytesText(static_cast<double>(memory.total())) + ": " + parts;
}

static void addGpus(Lines &lines, const Placement &placement) {
  const std::vector<GpuUse> &gpus = placement.gpus;
  const bool severalHosts = gpus.back().host > 0;
  const auto nameOf = [&](const GpuUse &use) {
    return "GPU " + std::to_string(use.gpu) +
           (severalHosts ? " of host " + std::to_string(use.host) : "");
  };
  const auto add = [&](const GpuUse &use, const std::string &remark) {
    lines.emplace_back(
        "GPU " + std::to_string(use.gpu),
        (severalHosts ? "of host " + std::to_string(use.host) + ", " : "") +
            ranksText(use.ranks) + remark + "; " + memoryText(use));
  };
  if (gpus.size() <= listedGpus) {
    for (const GpuUse &use : gpus)
      add(use, "");
    return;
  }
  const auto [least, most] = std::minmax_element(
      gpus.begin(), gpus.end(), [](const GpuUse &a, const GpuUse &b) {
        return a.memory.total() < b.memory.total();
      });
  lines.emplace_back(
      "GPUs", groupedText(gpus.size()) + ": " + ranksText(gpus.front().ranks) +
                  " on " + nameOf(gpus.front()) + ", ..., " +
                  ranksText(gpus.back().ranks) + " on " + nameOf(gpus.back()));
  if (least->memory.total() == most->memory.total())
    return add(gpus.front(), " (the others hold as much)");
  add(*most, " (most memory)");
  add(*least, " (least memory)");
}

//===----------------------------------------------------------------------===//
// Links, groups, streams
//===----------------------------------------------------------------------===//

static std::string roundsText(const std::vector<std::vector<int64_t>> &groups) {
  int64_t count = 0;
  for (const int64_t round : assignRounds(groups))
    count = std::max(count, round + 1);
  return counted(count, "round");
}

/// What links of one kind take.
static std::string linksText(const std::vector<LinkChoice::Link> &links,
                             LinkKind kind) {
  const std::string name = std::string(factsOf(kind).name) + ": ";
  if (kind != LinkKind::Nccl)
    return name + factsOf(kind).text;
  std::vector<std::vector<int64_t>> ends;
  for (const auto &[from, to] : links)
    ends.push_back({from, to});
  return name + counted(links.size(), "communicator") +
         " of 2 ranks, made in " + roundsText(ends);
}

static std::string linksText(const LinkChoice &choice, bool isChosen) {
  if (choice.links.empty())
    return "none";
  std::string text = groupedText(choice.links.size()) + " from rank to rank";
  for (const LinkKindFacts &facts : allLinkKinds) {
    const auto links = choice.over(facts.kind);
    if (links.size() == choice.links.size())
      text += ", " + linksText(links, facts.kind);
    else if (!links.empty())
      text += "; " + groupedText(links.size()) + " over " +
              linksText(links, facts.kind);
  }
  if (isChosen || choice.over(LinkKind::Nccl).size() == choice.links.size())
    return text;
  return text + "; where GPUs do not reach each other's memory nccl, which "
                "--transport nccl shows";
}

static std::string groupsText(const LinkChoice &choice) {
  std::vector<std::vector<int64_t>> groups = choice.groups;
  std::erase_if(groups, [](const auto &members) { return members.size() < 2; });
  if (groups.empty())
    return "none";
  const auto [least, most] = std::minmax_element(
      groups.begin(), groups.end(),
      [](const auto &a, const auto &b) { return a.size() < b.size(); });
  std::string text =
      groupedText(groups.size()) + " of " + groupedText(least->size()) +
      (most->size() > least->size() ? " to " + groupedText(most->size()) : "") +
      " ranks, ";
  if (choice.groupKind == LinkKind::Local)
    return text + "cuda-local: kernels that read what all members have, no "
                  "communicators";
  return text + "nccl: " + counted(groups.size() + 1, "communicator") +
         ", one of all ranks, from which the others are split in " +
         roundsText(groups);
}

/// The ranks of a replica that send to this one.
static std::vector<int64_t> sendersTo(const Program &program, int64_t number) {
  std::vector<int64_t> senders;
  for (size_t from = 0; from < program.ranks.size(); ++from)
    for (int64_t to : program.ranks[from].sendsTo)
      if (to == number)
        senders.push_back(from);
  return senders;
}

static std::string allStreamsText(const Program &program,
                                  const Placement &placement) {
  std::vector<int64_t> counts;
  int64_t sum = 0;
  bool collects = false, copies = false, offloads = false;
  for (const GpuUse &use : placement.gpus)
    copies |= use.memory.inputsAhead > 0;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const bool isMember = isInGroups(program, rank);
    collects |= isMember;
    const bool isOffloading = program.ranks[rank].hostBytes > 0;
    offloads |= isOffloading;
    counts.push_back(1 + program.ranks[rank].sendsTo.size() +
                     sendersTo(program, rank).size() + isMember +
                     2 * isOffloading);
    sum += counts.back() * program.replicas;
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::string text = groupedText(sum) + " in all";
  if (counts.size() * program.replicas > 1)
    text += ", " + groupedText(*least) +
            (*most > *least ? " to " + groupedText(*most) : "") + " a rank";
  text += ": one to compute";
  if (!linksOf(program).empty())
    text += ", one for each link to or from the rank";
  if (collects)
    text += ", one for all of its groups";
  if (offloads)
    text += ", two that copy stashes to the host and back";
  return text + (copies
                     ? "; beside them one that copies inputs of the next step"
                     : "");
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

static std::string kernelsText(const DeviceProgram &device) {
  std::set<int64_t> architectures;
  for (const DeviceImage &image : device.images)
    architectures.insert(image.architecture);
  std::string list;
  for (int64_t architecture : architectures)
    list += (list.empty() ? "sm_" : ", sm_") + std::to_string(architecture);
  return counted(device.kernels.size(), "compiled kernel") + ", PTX for " +
         (list.empty() ? "no GPU" : list + " and newer");
}

Lines pipewright::runtime::gpuLines(const Program &program,
                                    const RunSettings &settings) {
  const CudaOptions options = CudaOptions::of(settings);
  const std::optional<LinkKind> asked = options.links;
  const int64_t ranks = program.mesh().size();
  const Placement placement = placementOf(program, settings);
  const bool isNccl = placement.links.uses(LinkKind::Nccl);
  const bool mayShare = placement.links.groupKind == LinkKind::Local;
  std::string needs = "a GPU";
  if (ranks > 1)
    needs = counted(ranks, "GPU") +
            (mayShare ? ", or fewer that ranks share" : ", one for each rank");
  std::string opened = "libcuda.so.1";
  if (ranks > 1 && isNccl)
    opened += ", libnccl.so.2";
  else if (ranks > 1 && !asked)
    opened += ", libnccl.so.2 (where GPUs do not reach each other's memory)";
  Lines lines = {{"kernels", kernelsText(*program.device)},
                 {"needs", needs},
                 {"opens", opened + "; libcublasLt.so.13 for matrix products, "
                                    "libcudnn.so.9 for convolutions, "
                                    "attention in bf16"},
                 {"processes", processesText(program, placement)}};
  addGpus(lines, placement);
  if (ranks > 1) {
    lines.emplace_back("links", linksText(placement.links, asked.has_value()));
    lines.emplace_back("groups", groupsText(placement.links));
  }
  lines.emplace_back("streams", allStreamsText(program, placement));
  return lines;
}

std::string pipewright::runtime::streamsText(const Program &program,
                                             int64_t number) {
  const RankProgram &rank = program.ranks[number];
  std::string streams = "streams: compute";
  for (int64_t peer : rank.sendsTo)
    streams += ", to rank " + std::to_string(peer);
  for (int64_t peer : sendersTo(program, number))
    streams += ", from rank " + std::to_string(peer);
  if (isInGroups(program, number))
    streams += ", collective";
  if (rank.hostBytes > 0)
    streams += ", to the host, from the host";
  return streams + "; " + counted(rank.events, "event") + " in a step, " +
         groupedText(rank.evaluateEvents) + " in an evaluation";
}
