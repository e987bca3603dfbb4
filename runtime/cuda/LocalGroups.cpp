//===- LocalGroups.cpp - Collectives between threads with GPUs ------------===//

#include "runtime/cuda/LocalGroups.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/net/Agreement.h"

#include <algorithm>

using namespace pipewright::runtime;

bool pipewright::runtime::fitsLocalGroups(const Program &program) {
  return std::all_of(program.groups.begin(), program.groups.end(),
                     [&](const GroupInfo &group) {
                       return group.size(program.replicas) <=
                              MemberRanges::most;
                     });
}

LocalGroups::LocalGroups(LocalPlaces &world, Transport &control)
    : LocalMeetings(world, control) {
  CUdevice number = 0;
  PIPEWRIGHT_CUDA(cuCtxGetDevice(&number));
  device = Device::open(number);
}

// --- Connecting --------------------------------------------------------------

void LocalGroups::connect(const std::vector<std::vector<int64_t>> &all) {
  checkSameGroups(control, all);
  std::vector<RendezvousPoint *> own;
  for (const std::vector<int64_t> &members : all) {
    std::lock_guard<std::mutex> lock(world.mutex);
    // Whoever comes first makes it.
    if (world.groups.size() == groups.size())
      world.groups.emplace_back(members);
    RendezvousPoint &group = world.groups[groups.size()];
    const auto found =
        std::find(members.begin(), members.end(), control.rank());
    groups.push_back(found == members.end() ? nullptr : &group);
    if (found == members.end())
      continue;
    if (members.size() > MemberRanges::most)
      fail("cuda-local has collectives of ", MemberRanges::most,
           " members at most, but a group has ", members.size(),
           ": use --transport nccl");
    open(group, found - members.begin());
    own.push_back(&group);
  }
  for (const char *kernel : {"sum_members_f32", "sum_members_bf16"})
    findBuiltin(*device, kernel);
  // Now everyone knows the other ends.
  control.barrier();
  for (const RendezvousPoint *group : own)
    for (size_t m = 0; m < group->members.size(); ++m)
      if (!enablePeerAccess(context, group->ends[m].context))
        fail(processName(control.rank()), " and ",
             processName(group->members[m]),
             " are on GPUs that do not reach each other's memory, which what "
             "they do together over cuda-local needs: use --transport nccl");
  control.barrier();
}

// --- Enqueueing --------------------------------------------------------------

static CUdeviceptr addressIn(const LocalMeeting &meeting, int64_t member,
                             int64_t element) {
  const LocalMeeting::Part &part = meeting.parts[member];
  return part.data + element * byteWidth(part.what.type);
}

/// Adds what a member owns of all ranges, to where it has it.
void LocalGroups::enqueueSum(const LocalMeeting &meeting,
                             const Collective &what, int64_t owner,
                             CUstream stream) {
  const OwnedNumbers owned = what.ownedBy(owner);
  int64_t elements = owned.count();
  if (elements == 0)
    return;
  MemberRanges ranges = {};
  ranges.count = static_cast<int32_t>(what.members());
  for (int64_t m = 0; m < what.members(); ++m)
    ranges.at[m] = addressIn(meeting, m, owned.begin);
  CUdeviceptr to = addressIn(meeting, owner, owned.begin);
  const CUfunction function =
      findBuiltin(*device, std::string("sum_members") + typeSuffix(what.type));
  void *parameters[] = {&ranges, &to, &elements};
  constexpr int64_t threads = 256;
  PIPEWRIGHT_CUDA(cuLaunchKernel(
      function, static_cast<unsigned>((elements + threads - 1) / threads), 1, 1,
      threads, 1, 1, 0, stream, parameters, nullptr));
}

/// A part of one member's range to all others.
void LocalGroups::copyPart(const RendezvousPoint &group,
                           const LocalMeeting &meeting, int64_t from,
                           int64_t begin, int64_t end, CUstream stream) {
  const int64_t bytes =
      (end - begin) * byteWidth(meeting.parts[from].what.type);
  for (int64_t m = 0; m < static_cast<int64_t>(group.members.size()); ++m)
    if (m != from)
      copy(addressIn(meeting, m, begin), group.ends[m].context,
           addressIn(meeting, from, begin), group.ends[from].context, bytes,
           stream);
}

void LocalGroups::enqueue(const RendezvousPoint &group,
                          const LocalMeeting &meeting, int64_t member) {
  const CUstream stream = meeting.parts[member].stream;
  const Collective &what = meeting.parts[member].what;
  for (int64_t m = 0; m < what.members(); ++m) {
    const OwnedNumbers owned = what.ownedBy(m);
    if (what.facts().reduces && what.members() > 1)
      enqueueSum(meeting, what, m, stream);
    if (what.facts().replicates)
      copyPart(group, meeting, m, owned.begin, owned.end, stream);
  }
}

/// What a member gives that differs from what the first gives.
std::string LocalGroups::findDifference(const RendezvousPoint &group,
                                        const LocalMeeting &meeting) const {
  const Collective &first = meeting.parts[0].what;
  for (size_t m = 1; m < meeting.parts.size(); ++m)
    if (const Collective &what = meeting.parts[m].what; what != first)
      return differenceText(group.members[0], first, group.members[m], what);
  return "";
}

std::string LocalGroups::textOf(const LocalMeeting &meeting,
                                int64_t member) const {
  return meeting.parts[member].what.text();
}

void LocalGroups::collect(int64_t number, const Collective &what, void *data,
                          CUstream stream, CUevent done, double deadline) {
  if (number < 0 || number >= static_cast<int64_t>(groups.size()) ||
      !groups[number])
    fail(processName(control.rank()), " is in no group of number ", number);
  RendezvousPoint &group = *groups[number];
  checkCollective(what, group.members.size());
  const int64_t member =
      std::find(group.members.begin(), group.members.end(), control.rank()) -
      group.members.begin();
  // Collectives run on the stream of whoever comes last to them, in one order
  // within a group. One of another group may use the same bytes: it goes behind
  // them on this rank's stream, too.
  if (lastGroup >= 0 && lastGroup != number)
    settleAll(deadline);
  lastGroup = number;
  // What is wrong is said where the host waits for it.
  arrive(group, member,
         {reinterpret_cast<CUdeviceptr>(data), stream, done, 0, what});
}
