//===- LocalMeetings.cpp - Threads with GPUs that meet --------------------===//

#include "runtime/cuda/LocalMeetings.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <chrono>

using namespace pipewright::runtime;

LocalPlaces::LocalPlaces(int64_t ranks) : ranks(ranks) {
  for (int64_t from = 0; from < ranks; ++from)
    for (int64_t to = 0; to < ranks; ++to)
      links.emplace_back(std::vector<int64_t>{from, to});
}

void LocalPlaces::abort() {
  aborted = true;
  std::lock_guard<std::mutex> lock(mutex);
  for (auto *places : {&links, &groups})
    for (RendezvousPoint &place : *places) {
      // Behind this, nobody enqueues any more, and nobody has gone to sleep
      // without having seen it.
      std::lock_guard<std::mutex> placeLock(place.mutex);
      place.changed.notify_all();
    }
}

LocalMeetings::LocalMeetings(LocalPlaces &world, Transport &control)
    : world(world), control(control) {
  PIPEWRIGHT_CUDA(cuCtxGetCurrent(&context));
}

LocalMeetings::~LocalMeetings() {
  const Driver &driver = cudaDriver();
  for (const RendezvousPoint::End *end : ends) {
    driver.cuEventDestroy(end->enqueued);
    driver.cuStreamDestroy(end->completion);
  }
}

void LocalMeetings::open(RendezvousPoint &place, int64_t member) {
  RendezvousPoint::End &end = place.ends[member];
  end.context = context;
  PIPEWRIGHT_CUDA(cuEventCreate(&end.enqueued, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuStreamCreate(&end.completion, CU_STREAM_NON_BLOCKING));
  ends.push_back(&end);
}

// --- Coming ------------------------------------------------------------------

std::string LocalMeetings::arrive(RendezvousPoint &place, int64_t member,
                                  LocalMeeting::Part part) {
  std::lock_guard<std::mutex> lock(place.mutex);
  if (world.aborted)
    failAborted();
  const auto number = static_cast<size_t>(place.begun[member]++ - place.ended);
  while (place.meetings.size() <= number)
    place.meetings.push_back(
        std::make_shared<LocalMeeting>(place.members.size()));
  const std::shared_ptr<LocalMeeting> meeting = place.meetings[number];
  given[part.done] = {&place, meeting, member, numberGiven++};
  LocalMeeting::Part &own = meeting->parts[member];
  own = std::move(part);
  own.arrived = true;
  if (++meeting->arrivals < place.members.size()) {
    own.ready = events.take();
    PIPEWRIGHT_CUDA(cuEventRecord(own.ready, own.stream));
    return "";
  }
  // Meetings end in their order, as all members come to them in this order.
  place.meetings.pop_front();
  ++place.ended;
  meeting->error = findDifference(place, *meeting);
  if (meeting->error.empty())
    enqueueForAll(place, *meeting, member);
  meeting->met = true;
  place.changed.notify_all();
  return meeting->error;
}

/// The last member has come: enqueues the work, and records `done` of all
/// behind it.
void LocalMeetings::enqueueForAll(RendezvousPoint &place,
                                  const LocalMeeting &meeting, int64_t member) {
  const RendezvousPoint::End &mine = place.ends[member];
  const CUstream stream = meeting.parts[member].stream;
  for (const LocalMeeting::Part &part : meeting.parts)
    if (part.ready)
      PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, part.ready, 0));
  if (place.last >= 0 && place.last != member)
    PIPEWRIGHT_CUDA(
        cuStreamWaitEvent(stream, place.ends[place.last].enqueued, 0));
  enqueue(place, meeting, member);
  PIPEWRIGHT_CUDA(cuEventRecord(mine.enqueued, stream));
  place.last = member;
  for (size_t m = 0; m < place.ends.size(); ++m) {
    const RendezvousPoint::End &other = place.ends[m];
    const CUevent done = meeting.parts[m].done;
    if (other.context == context) {
      PIPEWRIGHT_CUDA(cuEventRecord(done, stream));
      continue;
    }
    PIPEWRIGHT_CUDA(cuCtxSetCurrent(other.context));
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(other.completion, mine.enqueued, 0));
    PIPEWRIGHT_CUDA(cuEventRecord(done, other.completion));
    PIPEWRIGHT_CUDA(cuCtxSetCurrent(context));
  }
}

void LocalMeetings::copy(CUdeviceptr to, CUcontext there, CUdeviceptr from,
                         CUcontext here, int64_t bytes, CUstream stream) const {
  if (bytes == 0)
    return;
  if (here == context && there == context)
    PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(to, from, bytes, stream));
  else
    PIPEWRIGHT_CUDA(cuMemcpyPeerAsync(to, there, from, here, bytes, stream));
}

// --- Waiting -----------------------------------------------------------------

std::shared_ptr<const std::atomic<bool>>
LocalMeetings::recorded(CUevent done) const {
  const auto found = given.find(done);
  if (found == given.end())
    return nullptr;
  const std::shared_ptr<LocalMeeting> &meeting = found->second.meeting;
  return {meeting, &meeting->met};
}

void LocalMeetings::waitFor(const Contribution &wanted, double deadline) {
  const auto &[place, meeting, member, number] = wanted;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(deadline);
  std::unique_lock<std::mutex> lock(place->mutex);
  while (!meeting->met) {
    if (world.aborted)
      failAborted();
    if (std::chrono::steady_clock::now() >= until) {
      size_t missing = 0;
      while (meeting->parts[missing].arrived)
        ++missing;
      failDeadline(control.rank(), place->members[missing],
                   textOf(*meeting, member), deadline);
    }
    // In slices: that another rank has failed may come by the control plane.
    place->changed.wait_for(lock, std::chrono::milliseconds(50));
    lock.unlock();
    control.poll();
    lock.lock();
  }
}

void LocalMeetings::settle(CUevent done, double deadline) {
  const auto found = given.find(done);
  if (found == given.end())
    return;
  waitFor(found->second, deadline);
  const LocalMeeting &meeting = *found->second.meeting;
  if (!meeting.error.empty())
    fail(meeting.error);
  const LocalMeeting::Part &part = meeting.parts[found->second.member];
  if (part.ready) {
    ahead.emplace_back(part.stream, done);
    // Whoever enqueued the work has told its stream to wait already.
    events.giveBack(part.ready);
  }
  given.erase(found);
}

void LocalMeetings::settleAll(double deadline) {
  // In the order of the program: what a person reads is where it stands.
  while (!given.empty())
    settle(std::min_element(given.begin(), given.end(),
                            [](const auto &a, const auto &b) {
                              return a.second.number < b.second.number;
                            })
               ->first,
           deadline);
  // From here on no stream can be idle before its work is over.
  for (const auto &[stream, done] : ahead)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, done, 0));
  ahead.clear();
}
