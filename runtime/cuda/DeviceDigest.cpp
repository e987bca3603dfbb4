//===- DeviceDigest.cpp - What a step on a GPU takes and gives ------------===//
//
// For a StepDigest (rank/StepDigest.h). The host reads a value at the place
// where `compute` has it, and waits for `compute` there: like this a step runs
// as on a CPU, where nothing is enqueued ahead.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/DeviceRank.h"

using namespace pipewright::runtime;
using Kind = StepDigest::Kind;

void DeviceRank::digestValue(Kind kind, int64_t place, int64_t number,
                             Buffer buffer) {
  std::vector<char> values(buffer.bytes);
  parts->drain({parts->computing}, transport());
  PIPEWRIGHT_CUDA(cuMemcpyDtoHAsync(values.data(),
                                    addressOf(device<void>(buffer)),
                                    buffer.bytes, parts->computing));
  parts->drain({parts->computing}, transport());
  digesting()->add(kind, place, number, values.data(), buffer.bytes);
}

void DeviceRank::digestPost(bool isSend, int64_t peer, Buffer buffer,
                            int64_t event) {
  StepDigest *digest = digesting();
  if (!digest)
    return;
  const Kind kind = isSend ? Kind::Send : Kind::Receive;
  const int64_t number = digest->next(kind, peer);
  if (!isSend)
    return parts->arrivals.post(receiveFrom(peer), event,
                                {kind, peer, number, buffer});
  digestValue(kind, peer, number, buffer);
  parts->arrivals.record(sendTo(peer), event);
}

/// Collectives that are under way may be about the same bytes.
void DeviceRank::waitForCollectives() {
  for (EventSlot &slot : parts->events)
    if (slot.state == EventSlot::State::Collective) {
      parts->settle(slot);
      PIPEWRIGHT_CUDA(cuStreamWaitEvent(parts->computing, slot.handle, 0));
    }
}

void DeviceRank::digestCollective(const GroupRequest &request) {
  StepDigest *digest = digesting();
  if (!digest)
    return;
  waitForCollectives();
  // Where nothing is added, or not all is handed out, a part of the range is
  // what was there before.
  const int64_t group = request.group, event = request.event;
  if (factsOf(request.kind).reduces)
    digestValue(Kind::Addend, group, digest->next(Kind::Addend, group),
                request.range);
  if (factsOf(request.kind).replicates)
    parts->arrivals.post(
        collective, event,
        {Kind::Sum, group, digest->next(Kind::Sum, group), request.range});
  else
    parts->arrivals.record(collective, event);
}

void DeviceRank::digestWait(Stream stream, int64_t event) {
  if (!digesting())
    return;
  const auto news = parts->arrivals.wait(stream, event);
  if (stream == compute)
    for (const auto &[kind, place, number, buffer] : news)
      digestValue(kind, place, number, buffer);
}
