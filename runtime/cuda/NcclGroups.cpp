//===- NcclGroups.cpp - Collectives between GPUs by NCCL ------------------===//

#include "runtime/cuda/NcclGroups.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/NcclMemory.h"
#include "runtime/cuda/Rounds.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <optional>

using namespace pipewright::runtime;

NcclGroups::Group::Group(Transport &control, const std::vector<int64_t> &given)
    : members(given), transport(control, given),
      // Their bytes, as numbers that nobody adds.
      notices({CollectiveKind::AllGather, ElementType::F32,
               evenBounds(transport.size() * sizeof(Notice) / sizeof(float),
                          transport.size())}),
      exchange(Collectives::open(transport)) {}

static bool isIn(const std::vector<int64_t> &members, int64_t rank) {
  return std::count(members.begin(), members.end(), rank) > 0;
}

/// "group of ranks 0, 2".
static std::string groupText(const std::vector<int64_t> &members) {
  std::string text = "group of ranks ";
  for (size_t m = 0; m < members.size(); ++m)
    text += (m ? ", " : "") + processNumber(members[m]);
  return text;
}

// --- Connecting --------------------------------------------------------------

static ncclConfig_t configOfGroups() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.maxCTAs = groupCtas;
  return config;
}

/// The communicator of all ranks. Rank 0 makes its id.
void NcclGroups::makeWhole(double deadline) {
  whole = &calls.add("communicator of all ranks", -1);
  ncclUniqueId id = {};
  if (control.rank() == 0) {
    calls.call(*whole, [&] { return nccl().ncclGetUniqueId(&id); });
    for (int64_t r = 1; r < control.size(); ++r)
      control.postSend(r, &id, sizeof id);
    for (int64_t r = 1; r < control.size(); ++r)
      control.waitSend(r);
  } else {
    control.postReceive(0, &id, sizeof id);
    control.waitReceive(0);
  }
  calls.make(*whole, "the other ranks", deadline,
             [id, size = static_cast<int>(control.size()),
              rank = static_cast<int>(control.rank())](ncclComm_t *handle) {
               ncclConfig_t config = configOfGroups();
               return nccl().ncclCommInitRankConfig(handle, size, id, rank,
                                                    &config);
             });
}

/// Groups that share no rank, with their numbers, by one call on all ranks.
void NcclGroups::split(
    const std::vector<std::pair<int64_t, std::vector<int64_t>>> &layer,
    double deadline) {
  int color = NCCL_SPLIT_NOCOLOR, key = 0;
  Group *own = nullptr;
  for (size_t i = 0; i < layer.size(); ++i) {
    const auto &[number, members] = layer[i];
    if (!isIn(members, control.rank()))
      continue;
    own = groups[number].get();
    own->communicator = &calls.add(groupText(members), -1);
    color = static_cast<int>(i);
    key = static_cast<int>(own->transport.rank());
  }
  const std::string what = "the other ranks of a split";
  const auto made = std::make_shared<ncclComm_t>(nullptr);
  calls.callAside(
      *whole, what, deadline, [made, parent = whole->handle, color, key] {
        ncclConfig_t config = configOfGroups();
        return nccl().ncclCommSplit(parent, color, key, made.get(), &config);
      });
  // The new one is there once the old one is ready again.
  calls.waitUntilReady(*whole, what, deadline);
  if (!own)
    return;
  own->communicator->handle = *made;
  calls.waitUntilReady(*own->communicator, "the other members", deadline);
}

void NcclGroups::connect(const std::vector<std::vector<int64_t>> &all,
                         double deadline) {
  checkSameGroups(control, all);
  using Numbered = std::pair<int64_t, std::vector<int64_t>>;
  std::vector<std::vector<Numbered>> layers;
  // A group of one is not made, and takes no round.
  std::vector<std::vector<int64_t>> made = all;
  for (std::vector<int64_t> &members : made)
    if (members.size() < 2)
      members.clear();
  const std::vector<int64_t> rounds = assignRounds(made);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<int64_t> &members = all[i];
    groups.push_back(isIn(members, control.rank())
                         ? std::make_unique<Group>(control, members)
                         : nullptr);
    if (members.size() < 2)
      continue;
    layers.resize(std::max<size_t>(layers.size(), rounds[i] + 1));
    layers[rounds[i]].emplace_back(static_cast<int64_t>(i), members);
  }
  if (!layers.empty() && !whole)
    makeWhole(deadline);
  for (const auto &layer : layers)
    split(layer, deadline);
  warmUp(deadline);
}

/// What NCCL does at a first use is a handshake between hosts; see NcclLinks.
void NcclGroups::warmUp(double deadline) {
  std::vector<Group *> own;
  for (const auto &group : groups)
    if (group && group->communicator)
      own.push_back(group.get());
  std::optional<NcclWarmUp> space;
  if (!own.empty())
    space.emplace(own.size());
  control.barrier();
  for (size_t i = 0; i < own.size(); ++i)
    runFirst(*own[i], *space, i, deadline);
  control.barrier();
}

/// One collective of each kind, of one number for each member.
void NcclGroups::runFirst(Group &group, const NcclWarmUp &space, size_t place,
                          double deadline) {
  const int64_t members = group.transport.size(), self = group.transport.rank();
  if (members * sizeof(float) > NcclWarmUp::spacing)
    return;
  for (const CollectiveFacts &facts : allCollectives) {
    std::vector<float> values(members, static_cast<float>(self + 1));
    copyToDevice(space.at(place), values.data(), members * sizeof(float));
    const Collective what = {facts.kind, ElementType::F32,
                             evenBounds(members, members)};
    launch(group, what, reinterpret_cast<void *>(space.at(place)),
           space.stream(place), /*isFirst=*/true, deadline);
    calls.waitUntilExchanged(*group.communicator, space.stream(place),
                             deadline);
    PIPEWRIGHT_CUDA(
        cuMemcpyDtoH(values.data(), space.at(place), members * sizeof(float)));
    const OwnedNumbers mine =
        facts.replicates ? OwnedNumbers{0, members} : what.ownedBy(self);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const int64_t owner = facts.rooted ? what.root : i;
      if (values[i] != static_cast<float>(facts.reduces
                                              ? members * (members + 1) / 2
                                              : owner + 1))
        fail(processName(control.rank()), ", ", group.communicator->text,
             " exchanges what is not there: NCCL, or the network, is broken");
    }
  }
}

// --- Collectives -------------------------------------------------------------

static ncclDataType_t typeOf(const Collective &what) {
  return what.type == ElementType::BF16 ? ncclBfloat16 : ncclFloat32;
}

/// Parts of different lengths, as one operation for each that is not empty.
template <class Body>
static ncclResult_t forParts(const Collective &what, const Body &body) {
  ncclResult_t result = nccl().ncclGroupStart();
  for (int64_t m = 0; m < what.members() && result == ncclSuccess; ++m)
    if (what.partOf(m) > 0)
      result = body(m);
  const ncclResult_t end = nccl().ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

/// In place: the whole range is `data` on all members.
static ncclResult_t enqueue(ncclComm_t comm, int64_t self,
                            const Collective &what, void *data,
                            CUstream stream) {
  const Nccl &api = nccl();
  const ncclDataType_t type = typeOf(what);
  const int64_t count = what.count();
  auto at = [&](int64_t member) {
    return static_cast<char *>(data) +
           what.bounds[member] * byteWidth(what.type);
  };
  switch (what.kind) {
  case CollectiveKind::AllReduce:
    return api.ncclAllReduce(data, data, count, type, ncclSum, comm, stream);
  case CollectiveKind::Broadcast:
    return api.ncclBroadcast(data, data, count, type,
                             static_cast<int>(what.root), comm, stream);
  case CollectiveKind::Reduce:
    return api.ncclReduce(data, data, count, type, ncclSum,
                          static_cast<int>(what.root), comm, stream);
  case CollectiveKind::ReduceScatter:
    if (what.isEven())
      return api.ncclReduceScatter(data, at(self), what.partOf(self), type,
                                   ncclSum, comm, stream);
    return forParts(what, [&](int64_t m) {
      return api.ncclReduce(at(m), at(m), what.partOf(m), type, ncclSum,
                            static_cast<int>(m), comm, stream);
    });
  case CollectiveKind::AllGather:
    if (what.isEven())
      return api.ncclAllGather(at(self), data, what.partOf(self), type, comm,
                               stream);
    return forParts(what, [&](int64_t m) {
      return api.ncclBroadcast(at(m), at(m), what.partOf(m), type,
                               static_cast<int>(m), comm, stream);
    });
  }
  return ncclInvalidArgument;
}

void NcclGroups::launch(const Group &group, const Collective &what, void *data,
                        CUstream stream, bool isFirst, double deadline) {
  if (!group.communicator || what.count() == 0)
    return;
  const std::string text = "launch of the " + what.text();
  const auto body = [comm = group.communicator->handle,
                     self = group.transport.rank(), what, data, stream] {
    return enqueue(comm, self, what, data, stream);
  };
  if (isFirst)
    calls.callAside(*group.communicator, text, deadline, body);
  else
    calls.call(*group.communicator, body);
  // As for transfers: before that, an event would be recorded in front of it.
  calls.waitUntilReady(*group.communicator, text, deadline);
}

void NcclGroups::collect(int64_t number, const Collective &what, void *data,
                         CUstream stream, CUevent done, bool comparing,
                         double deadline) {
  if (number < 0 || number >= static_cast<int64_t>(groups.size()) ||
      !groups[number])
    fail(processName(control.rank()), " is in no group of number ", number);
  Group &group = *groups[number];
  checkCollective(what, group.transport.size());
  if (comparing)
    tell(group, what, done);
  // NCCL connects members as a collective needs it: the first time it may wait
  // for them. All later runs of a function give the same collectives.
  launch(group, what, data, stream, /*isFirst=*/comparing, deadline);
  PIPEWRIGHT_CUDA(cuEventRecord(done, stream));
}

// --- Comparing ---------------------------------------------------------------

static int64_t hashOfBounds(const std::vector<int64_t> &numbers) {
  Hash hash;
  for (const int64_t number : numbers)
    hash.addWord(static_cast<uint64_t>(number));
  return static_cast<int64_t>(hash.value());
}

void NcclGroups::tell(Group &group, const Collective &what, CUevent done) {
  const int64_t members = group.transport.size();
  Unconfirmed &told = group.told.emplace_back(
      Unconfirmed{done, what, std::vector<Notice>(members)});
  told.notices[group.transport.rank()] = {
      static_cast<int64_t>(what.kind), static_cast<int64_t>(what.type),
      what.count(), what.root, hashOfBounds(what.bounds)};
  group.exchange->begin(group.notices, told.notices.data(), nullptr);
}

void NcclGroups::confirmOldest(Group &group) {
  Unconfirmed &told = group.told.front();
  const int64_t self = group.transport.rank();
  try {
    group.exchange->finish();
  } catch (const DeadlinePassed &late) {
    throw DeadlinePassed(told.what.text() + ": " + late.what());
  }
  const Notice &own = told.notices[self];
  for (int64_t m = 0; m < group.transport.size(); ++m) {
    const Notice &other = told.notices[m];
    if (other == own)
      continue;
    if (other.kind < 0 || other.kind >= std::ssize(allCollectives))
      fail(processName(group.members[m]), " gives a collective of kind ",
           other.kind, ", which nobody knows");
    Collective theirs = told.what;
    theirs.kind = static_cast<CollectiveKind>(other.kind);
    theirs.type = static_cast<ElementType>(other.type);
    theirs.bounds = {0, other.count};
    fail(differenceText(group.members[self], told.what, group.members[m],
                        theirs));
  }
  group.told.pop_front();
}

void NcclGroups::settle(CUevent done) {
  for (const auto &group : groups) {
    if (!group)
      continue;
    auto isWanted = [&](const Unconfirmed &told) { return told.done == done; };
    while (std::any_of(group->told.begin(), group->told.end(), isWanted))
      confirmOldest(*group);
  }
}

void NcclGroups::settleAll() {
  for (const auto &group : groups)
    while (group && !group->told.empty())
      confirmOldest(*group);
}
