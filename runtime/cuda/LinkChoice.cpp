//===- LinkChoice.cpp - Which link is of which kind -----------------------===//

#include "runtime/cuda/LinkChoice.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/ProcessGroups.h"
#include "runtime/cuda/SharedMemory.h"
#include "runtime/net/Gather.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <unistd.h>

using namespace pipewright::runtime;

std::vector<LinkChoice::Link> LinkChoice::over(LinkKind kind) const {
  std::vector<Link> found;
  for (size_t i = 0; i < links.size(); ++i)
    if (kinds[i] == kind)
      found.push_back(links[i]);
  return found;
}

std::vector<std::vector<int64_t>> LinkChoice::groupsOver(LinkKind kind) const {
  return kind == groupKind ? groups : std::vector<std::vector<int64_t>>();
}

bool LinkChoice::uses(LinkKind kind) const {
  const auto over = groupsOver(kind);
  return std::count(kinds.begin(), kinds.end(), kind) > 0 ||
         std::any_of(over.begin(), over.end(),
                     [](const auto &members) { return members.size() > 1; });
}

LinkChoice pipewright::runtime::planLinks(const Program &program,
                                          LinkKind wanted,
                                          const std::vector<int64_t> &hosts) {
  LinkChoice choice;
  choice.links = linksOf(program);
  choice.groups = groupsOf(program);
  choice.groupKind = wanted == LinkKind::Ipc ? LinkKind::Nccl : wanted;
  for (const auto &[from, to] : choice.links) {
    const bool isApart = wanted == LinkKind::Ipc && hosts[from] != hosts[to];
    choice.kinds.push_back(isApart ? LinkKind::Nccl : wanted);
  }
  return choice;
}

std::string pipewright::runtime::linkLines(const LinkChoice &choice) {
  constexpr size_t listed = 8;
  std::string text;
  for (const LinkKindFacts &facts : allLinkKinds) {
    const std::vector<LinkChoice::Link> links = choice.over(facts.kind);
    if (links.empty())
      continue;
    text += (text.empty() ? "" : "\n") + std::string("links over ") +
            facts.name + ": ";
    for (size_t i = 0; i < std::min(links.size(), listed); ++i)
      text += (i ? ", " : "") + processNumber(links[i].first) + " -> " +
              processNumber(links[i].second);
    if (links.size() > listed)
      text += " and " + std::to_string(links.size() - listed) + " more";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// What works
//===----------------------------------------------------------------------===//

/// Of each rank, as NCCL tells hosts apart: NCCL_HOSTID, or name and boot.
static std::vector<int64_t> hostsOf(Transport &transport) {
  std::string own;
  if (const char *id = std::getenv("NCCL_HOSTID"); id && *id) {
    own = id;
  } else {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    std::ifstream("/proc/sys/kernel/random/boot_id") >> own;
    own += name;
  }
  std::map<uint64_t, int64_t> numbers;
  std::vector<int64_t> hosts;
  for (const uint64_t host : gatherToAll(transport, hashOf(own)))
    hosts.push_back(
        numbers.try_emplace(host, static_cast<int64_t>(numbers.size()))
            .first->second);
  return hosts;
}

namespace {

/// What a rank shares with others to find out whether they can open it: some of
/// each that cuda-ipc needs.
class Samples {
public:
  struct Offer {
    /// Whether there is anything to open.
    int64_t isThere;
    CUipcMemHandle memory;
    CUipcEventHandle event;
    /// Names, which end with a zero.
    char board[64], bus[64];
  };

  Samples(const Device &device) : device(device) {}
  Samples(const Samples &) = delete;
  Samples &operator=(const Samples &) = delete;
  ~Samples() {
    const Driver &driver = cudaDriver();
    if (event)
      driver.cuEventDestroy(event);
    if (memory)
      driver.cuMemFree(memory);
  }

  Offer makeOffer();
  /// "", or why it cannot be opened.
  std::string tryToOpen(const Offer &offer) const;
  /// Why there is nothing to open.
  std::string reason;

private:
  static constexpr int64_t bytes = 64;

  const Device &device;
  SharedMemory board;
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
};

} // namespace

Samples::Offer Samples::makeOffer() {
  Offer offer = {};
  try {
    PIPEWRIGHT_CUDA(cuMemAlloc(&memory, bytes));
    PIPEWRIGHT_CUDA(cuIpcGetMemHandle(&offer.memory, memory));
    PIPEWRIGHT_CUDA(
        cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    PIPEWRIGHT_CUDA(cuIpcGetEventHandle(&offer.event, event));
    board = SharedMemory::create(bytes);
    std::strncpy(offer.board, board.name().c_str(), sizeof offer.board - 1);
    PIPEWRIGHT_CUDA(
        cuDeviceGetPCIBusId(offer.bus, sizeof offer.bus, device.handle()));
    offer.isThere = 1;
  } catch (const Error &error) {
    reason = error.what();
  }
  return offer;
}

std::string Samples::tryToOpen(const Offer &offer) const {
  if (!offer.isThere)
    return "the other end cannot share its memory";
  try {
    const std::string bus(offer.bus, strnlen(offer.bus, sizeof offer.bus));
    const std::string name(offer.board,
                           strnlen(offer.board, sizeof offer.board));
    CUdevice other = 0;
    int can = 1;
    // A GPU that this process is not shown may be reached all the same.
    if (cudaDriver().cuDeviceGetByPCIBusId(&other, bus.c_str()) ==
            CUDA_SUCCESS &&
        other != device.handle())
      PIPEWRIGHT_CUDA(cuDeviceCanAccessPeer(&can, device.handle(), other));
    if (!can)
      return "their GPUs do not reach each other's memory";
    SharedMemory::open(name, bytes);
    CUevent opened = nullptr;
    PIPEWRIGHT_CUDA(cuIpcOpenEventHandle(&opened, offer.event));
    PIPEWRIGHT_CUDA(cuEventDestroy(opened));
    CUdeviceptr address = 0;
    PIPEWRIGHT_CUDA(cuIpcOpenMemHandle(&address, offer.memory,
                                       CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    PIPEWRIGHT_CUDA(cuIpcCloseMemHandle(address));
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

/// By peer, why this rank has no cuda-ipc with it; "" where it has.
static std::map<int64_t, std::string>
tryPeers(const std::vector<LinkChoice::Link> &links, const Device &device,
         Transport &transport) {
  const int64_t self = transport.rank();
  std::map<int64_t, Samples::Offer> others;
  for (const auto &[from, to] : links)
    if (from == self || to == self)
      others[from == self ? to : from];
  std::map<int64_t, std::string> reasons;
  Samples samples(device);
  if (!others.empty()) {
    const Samples::Offer own = samples.makeOffer();
    for (auto &[peer, offer] : others) {
      transport.postSend(peer, &own, sizeof own);
      transport.postReceive(peer, &offer, sizeof offer);
    }
    for (const auto &[peer, offer] : others) {
      transport.waitSend(peer);
      transport.waitReceive(peer);
    }
    for (const auto &[peer, offer] : others)
      reasons[peer] =
          samples.reason.empty() ? samples.tryToOpen(offer) : samples.reason;
  }
  // What is open somewhere must not go.
  transport.barrier();
  return reasons;
}

LinkChoice pipewright::runtime::chooseLinks(const Program &program,
                                            LinkKind wanted, bool mustBeIpc,
                                            const Device &device,
                                            Transport &transport,
                                            std::string &remarks) {
  LinkChoice choice = planLinks(program, wanted, hostsOf(transport));
  const std::vector<LinkChoice::Link> apart = choice.over(LinkKind::Nccl);
  if (mustBeIpc && !apart.empty())
    fail("--transport cuda-ipc: ", processName(apart.front().first), " and ",
         processName(apart.front().second),
         " are on different hosts; leave the option out, and links between "
         "hosts go over nccl");
  const auto reasons = tryPeers(choice.over(LinkKind::Ipc), device, transport);
  const std::string self = processName(transport.rank());
  for (const auto &[peer, reason] : reasons) {
    if (reason.empty())
      continue;
    if (mustBeIpc)
      fail("--transport cuda-ipc does not work with ", processName(peer), ": ",
           reason);
    remarks += (remarks.empty() ? "" : "\n") + self + " has no cuda-ipc with " +
               processName(peer) + ", which takes nccl: " + reason;
  }
  // How many ends of each link cannot.
  std::vector<double> unable(choice.links.size());
  for (size_t i = 0; i < choice.links.size(); ++i) {
    const auto &[from, to] = choice.links[i];
    const auto found = reasons.find(from == transport.rank() ? to : from);
    const bool isEnd = from == transport.rank() || to == transport.rank();
    unable[i] = choice.kinds[i] == LinkKind::Ipc && isEnd &&
                found != reasons.end() && !found->second.empty();
  }
  transport.sumToAll(unable.data(), static_cast<int64_t>(unable.size()));
  for (size_t i = 0; i < choice.links.size(); ++i)
    if (unable[i] > 0)
      choice.kinds[i] = LinkKind::Nccl;
  return choice;
}
