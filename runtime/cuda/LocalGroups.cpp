//===- LocalGroups.cpp - Collectives between threads with GPUs ------------===//

#include "runtime/cuda/LocalGroups.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/net/Agreement.h"

#include <algorithm>
#include <chrono>
#include <exception>

using namespace pipewright::runtime;

void LocalGroupList::abort() {
  aborted = true;
  std::lock_guard<std::mutex> lock(mutex);
  for (LocalGroup &group : groups) {
    // So that nobody has gone to sleep without having seen it.
    std::lock_guard<std::mutex> groupLock(group.mutex);
    group.changed.notify_all();
  }
}

LocalGroups::LocalGroups(LocalGroupList &world, Transport &control)
    : world(world), control(control) {
  CUdevice number = 0;
  PIPEWRIGHT_CUDA(cuCtxGetCurrent(&context));
  PIPEWRIGHT_CUDA(cuCtxGetDevice(&number));
  device = Device::open(number);
}

LocalGroups::~LocalGroups() {
  const Driver &driver = cudaDriver();
  for (CUevent event : spare)
    driver.cuEventDestroy(event);
  for (const LocalGroup::End *end : ends) {
    driver.cuEventDestroy(end->enqueued);
    driver.cuStreamDestroy(end->completion);
  }
}

void LocalGroups::failAborted() const {
  throw Aborted("stopped because another rank failed");
}

// --- Connecting --------------------------------------------------------------

void LocalGroups::open(LocalGroup &group, int64_t member) {
  LocalGroup::End &end = group.ends[member];
  end.context = context;
  PIPEWRIGHT_CUDA(cuEventCreate(&end.enqueued, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuStreamCreate(&end.completion, CU_STREAM_NON_BLOCKING));
  ends.push_back(&end);
}

void LocalGroups::connect(const std::vector<std::vector<int64_t>> &all) {
  std::string text;
  for (const std::vector<int64_t> &members : all) {
    for (const int64_t member : members)
      text += std::to_string(member) + " ";
    text += "; ";
  }
  checkAgreement(control, text, "groups");
  std::vector<LocalGroup *> own;
  for (const std::vector<int64_t> &members : all) {
    std::lock_guard<std::mutex> lock(world.mutex);
    // Whoever comes first makes it.
    if (world.groups.size() == groups.size())
      world.groups.emplace_back(members);
    LocalGroup &group = world.groups[groups.size()];
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
  for (const LocalGroup *group : own)
    for (const LocalGroup::End &end : group->ends)
      enablePeerAccess(context, end.context);
  control.barrier();
}

// --- Enqueueing --------------------------------------------------------------

CUevent LocalGroups::takeEvent() {
  CUevent event = nullptr;
  if (spare.empty()) {
    PIPEWRIGHT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
  }
  event = spare.back();
  spare.pop_back();
  return event;
}

static CUdeviceptr addressIn(const LocalMeeting &meeting, int64_t member,
                             int64_t element) {
  const LocalMeeting::Part &part = meeting.parts[member];
  return part.data + element * byteWidth(part.what.type);
}

/// Adds one part of all ranges, to where its owner has it.
void LocalGroups::enqueueSum(const LocalMeeting &meeting,
                             const Collective &what, int64_t part,
                             CUstream stream) {
  int64_t elements = what.partOf(part);
  if (elements == 0)
    return;
  MemberRanges ranges = {};
  ranges.count = static_cast<int32_t>(what.members());
  for (int64_t m = 0; m < what.members(); ++m)
    ranges.at[m] = addressIn(meeting, m, what.bounds[part]);
  CUdeviceptr to = addressIn(meeting, part, what.bounds[part]);
  const CUfunction function =
      findBuiltin(*device, std::string("sum_members") + typeSuffix(what.type));
  void *parameters[] = {&ranges, &to, &elements};
  constexpr int64_t threads = 256;
  PIPEWRIGHT_CUDA(cuLaunchKernel(
      function, static_cast<unsigned>((elements + threads - 1) / threads), 1, 1,
      threads, 1, 1, 0, stream, parameters, nullptr));
}

/// A part of one member's range to all others.
void LocalGroups::copyPart(const LocalGroup &group, const LocalMeeting &meeting,
                           int64_t from, int64_t begin, int64_t end,
                           CUstream stream) {
  const int64_t bytes =
      (end - begin) * byteWidth(meeting.parts[from].what.type);
  for (int64_t m = 0; m < static_cast<int64_t>(group.members.size()); ++m) {
    if (m == from || bytes == 0)
      continue;
    const CUdeviceptr source = addressIn(meeting, from, begin),
                      to = addressIn(meeting, m, begin);
    const CUcontext there = group.ends[m].context,
                    here = group.ends[from].context;
    if (here == context && there == context)
      PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(to, source, bytes, stream));
    else
      PIPEWRIGHT_CUDA(
          cuMemcpyPeerAsync(to, there, source, here, bytes, stream));
  }
}

/// The last member has come: enqueues everything on its stream.
void LocalGroups::enqueue(LocalGroup &group, LocalMeeting &meeting,
                          int64_t member) {
  const LocalMeeting::Part &own = meeting.parts[member];
  const CUstream stream = own.stream;
  for (const LocalMeeting::Part &part : meeting.parts)
    if (part.ready)
      PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, part.ready, 0));
  if (group.last >= 0 && group.last != member)
    PIPEWRIGHT_CUDA(
        cuStreamWaitEvent(stream, group.ends[group.last].enqueued, 0));
  const Collective &what = own.what;
  const bool adds = what.kind == Collective::AllReduce ||
                    what.kind == Collective::ReduceScatter;
  for (int64_t m = 0; m < what.members(); ++m) {
    if (adds && what.members() > 1)
      enqueueSum(meeting, what, m, stream);
    if (what.kind == Collective::AllReduce ||
        what.kind == Collective::AllGather)
      copyPart(group, meeting, m, what.bounds[m], what.bounds[m + 1], stream);
  }
  if (what.kind == Collective::Broadcast)
    copyPart(group, meeting, what.root, 0, what.count(), stream);
  tellOthers(group, meeting, member);
}

/// Records `done` of all members behind the collective.
void LocalGroups::tellOthers(LocalGroup &group, LocalMeeting &meeting,
                             int64_t member) {
  const LocalGroup::End &mine = group.ends[member];
  const CUstream stream = meeting.parts[member].stream;
  PIPEWRIGHT_CUDA(cuEventRecord(mine.enqueued, stream));
  group.last = member;
  for (size_t m = 0; m < group.ends.size(); ++m) {
    const LocalGroup::End &end = group.ends[m];
    if (end.context == context) {
      PIPEWRIGHT_CUDA(cuEventRecord(meeting.parts[m].done, stream));
      continue;
    }
    PIPEWRIGHT_CUDA(cuCtxSetCurrent(end.context));
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(end.completion, mine.enqueued, 0));
    PIPEWRIGHT_CUDA(cuEventRecord(meeting.parts[m].done, end.completion));
    PIPEWRIGHT_CUDA(cuCtxSetCurrent(context));
  }
}

/// What a member gives that differs from what the first gives; "" if none does.
static std::string findDifference(const LocalGroup &group,
                                  const LocalMeeting &meeting) {
  const Collective &first = meeting.parts[0].what;
  for (size_t m = 1; m < meeting.parts.size(); ++m)
    if (const Collective &what = meeting.parts[m].what; what != first)
      return differenceText(group.members[0], first, group.members[m], what);
  return "";
}

void LocalGroups::collect(int64_t number, const Collective &what, void *data,
                          CUstream stream, CUevent done) {
  if (number < 0 || number >= static_cast<int64_t>(groups.size()) ||
      !groups[number])
    fail("rank ", control.rank(), " is in no group of number ", number);
  LocalGroup &group = *groups[number];
  const auto members = static_cast<int64_t>(group.members.size());
  checkCollective(what, members);
  const int64_t member =
      std::find(group.members.begin(), group.members.end(), control.rank()) -
      group.members.begin();
  std::lock_guard<std::mutex> lock(group.mutex);
  if (world.aborted)
    failAborted();
  const auto place = static_cast<size_t>(group.begun[member]++ - group.ended);
  while (group.meetings.size() <= place) {
    group.meetings.push_back(std::make_shared<LocalMeeting>());
    group.meetings.back()->parts.resize(members);
  }
  const std::shared_ptr<LocalMeeting> meeting = group.meetings[place];
  given[done] = {meeting, &group, member, numberGiven++};
  LocalMeeting::Part &part = meeting->parts[member];
  part = {true,    what, reinterpret_cast<CUdeviceptr>(data),
          nullptr, done, stream};
  if (++meeting->come < members) {
    part.ready = takeEvent();
    PIPEWRIGHT_CUDA(cuEventRecord(part.ready, stream));
    return;
  }
  // Meetings end in their order, as all members come to them in this order.
  group.meetings.pop_front();
  ++group.ended;
  meeting->error = findDifference(group, *meeting);
  if (meeting->error.empty())
    enqueue(group, *meeting, member);
  *meeting->met = true;
  group.changed.notify_all();
}

// --- Waiting -----------------------------------------------------------------

std::shared_ptr<const std::atomic<bool>>
LocalGroups::recorded(CUevent done) const {
  const auto found = given.find(done);
  return found == given.end() ? nullptr : found->second.meeting->met;
}

void LocalGroups::settle(CUevent done, double deadline) {
  const auto found = given.find(done);
  if (found == given.end())
    return;
  const auto [meeting, group, member, number] = found->second;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(deadline);
  std::unique_lock<std::mutex> lock(group->mutex);
  while (!*meeting->met) {
    if (world.aborted)
      failAborted();
    if (std::chrono::steady_clock::now() >= until) {
      size_t missing = 0;
      while (meeting->parts[missing].isThere)
        ++missing;
      failDeadline(control.rank(), group->members[missing],
                   meeting->parts[member].what.text(), deadline);
    }
    // In slices: that another rank has failed may come by the control plane.
    group->changed.wait_for(lock, std::chrono::milliseconds(50));
    lock.unlock();
    control.poll();
    lock.lock();
  }
  if (!meeting->error.empty())
    fail(meeting->error);
  if (CUevent ready = meeting->parts[member].ready) {
    ahead.emplace_back(meeting->parts[member].stream, done);
    // Whoever enqueued it has told its stream to wait already.
    spare.push_back(ready);
  }
  given.erase(found);
}

void LocalGroups::settleAll(double deadline) {
  while (!given.empty())
    settle(std::min_element(given.begin(), given.end(),
                            [](const auto &a, const auto &b) {
                              return a.second.number < b.second.number;
                            })
               ->first,
           deadline);
  for (const auto &[stream, done] : ahead)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, done, 0));
  ahead.clear();
}
