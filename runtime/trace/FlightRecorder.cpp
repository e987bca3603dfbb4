//===- FlightRecorder.cpp - What a rank did last --------------------------===//

#include "runtime/trace/FlightRecorder.h"
#include "runtime/trace/Trace.h"

#include <algorithm>

using namespace pipewright::runtime;

static constexpr auto relaxed = std::memory_order_relaxed;
static constexpr auto acquire = std::memory_order_acquire;
static constexpr auto release = std::memory_order_release;

static int64_t nowInNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FlightRecorder::FlightRecorder()
    : own(std::make_unique<FlightRing>()), ring(own.get()) {}

void FlightRecorder::keepIn(const std::string &path,
                            const FlightRing::Owner &owner) {
  end();
  if (FlightRing *const mapped = file.create(path, owner))
    ring.store(mapped);
}

void FlightRecorder::removeFile() { file.remove(); }

static int64_t packed(char kind, int64_t place, int64_t microBatch) {
  return static_cast<int64_t>(static_cast<uint64_t>(kind) << 56 |
                              (static_cast<uint64_t>(place) & 0xffffff) << 32 |
                              (static_cast<uint64_t>(microBatch) & 0xffffffff));
}

FlightRing::Slot &FlightRecorder::add(char kind, int64_t place,
                                      int64_t microBatch, int64_t now) {
  FlightRing &to = *ring.load(relaxed);
  const uint64_t number = to.count.load(relaxed);
  FlightRing::Slot &slot = to.slots[number % capacity];
  // Readers who see any of what follows see from the count that it is new.
  to.count.store(number + 1, relaxed);
  slot.words[0].store(packed(kind, place, microBatch), release);
  slot.words[1].store(to.step.load(relaxed), release);
  slot.words[2].store(now, release);
  return slot;
}

void FlightRecorder::begin(char kind, int64_t place, int64_t microBatch) {
  const int64_t now = nowInNanoseconds();
  if (running)
    running->store(now, release);
  FlightRing::Slot &slot = add(kind, place, microBatch, now);
  slot.words[3].store(0, release);
  running = &slot.words[3];
}

void FlightRecorder::post(Kind kind, int64_t peer) {
  const int64_t now = nowInNanoseconds();
  add(kind, peer, 0, now).words[3].store(now, release);
}

void FlightRecorder::end() {
  if (running)
    running->store(nowInNanoseconds(), release);
  running = nullptr;
}

std::vector<FlightRecorder::Operation>
FlightRecorder::last(uint64_t most) const {
  return lastOperations(*ring.load(acquire), most);
}

std::vector<FlightRecorder::Operation>
pipewright::runtime::lastOperations(const FlightRing &ring, uint64_t most) {
  constexpr uint64_t capacity = FlightRing::capacity;
  const uint64_t end = ring.count.load(acquire);
  const uint64_t first = end - std::min({end, most, capacity});
  std::vector<FlightRecorder::Operation> operations;
  for (uint64_t number = first; number < end; ++number) {
    const FlightRing::Slot &slot = ring.slots[number % capacity];
    FlightRecorder::Operation operation;
    const uint64_t word = slot.words[0].load(acquire);
    operation.kind = static_cast<char>(word >> 56);
    operation.place = word >> 32 & 0xffffff;
    operation.microBatch = word & 0xffffffff;
    operation.step = slot.words[1].load(acquire);
    operation.start = slot.words[2].load(acquire);
    operation.end = slot.words[3].load(acquire);
    // It may not be written yet, or may be overwritten meanwhile.
    const bool intact = ring.count.load(relaxed) <= number + capacity;
    if (intact && operation.kind)
      operations.push_back(operation);
  }
  return operations;
}

std::string
pipewright::runtime::nameOf(const FlightRecorder::Operation &operation) {
  const std::string peer = std::to_string(operation.place);
  switch (operation.kind) {
  case FlightRecorder::PostSend:
    return "post-send>" + peer;
  case FlightRecorder::PostReceive:
    return "post-receive<" + peer;
  case FlightRecorder::WaitSend:
    return "send>" + peer;
  case FlightRecorder::WaitReceive:
    return "receive<" + peer;
  case FlightRecorder::PostCollective:
    return "post-collective." + peer;
  case FlightRecorder::WaitCollective:
    return "collective." + peer;
  case FlightRecorder::Norm:
    return "norm";
  case FlightRecorder::EndOfStep:
    return "end-of-step";
  default:
    break;
  }
  const char kind[] = {operation.kind, 0};
  return taskName(kind, operation.place, operation.microBatch);
}

std::string FlightRecorder::lastText(uint64_t most) const {
  std::string text;
  for (const Operation &operation : last(most))
    text += (text.empty() ? "" : " ") + nameOf(operation);
  return text;
}

/// What a trace calls it.
static Trace::Label labelOf(const FlightRecorder::Operation &operation,
                            int64_t rank) {
  static const char letters[][2] = {"A", "B", "C", "D", "E", "F", "G", "H", "I",
                                    "J", "K", "L", "M", "N", "O", "P", "Q", "R",
                                    "S", "T", "U", "V", "W", "X", "Y", "Z"};
  using Category = Trace::Category;
  const int64_t place = operation.place;
  if (operation.isTask())
    return {Category::Task, letters[operation.kind - 'A'], place,
            operation.microBatch};
  if (operation.kind == FlightRecorder::PostCollective)
    return {Category::Collective, "collective", place};
  if (operation.kind == FlightRecorder::WaitCollective)
    return {Category::CollectiveWait, "collective", place};
  if (operation.isPost())
    return {Category::Transfer,
            operation.kind == FlightRecorder::PostSend ? "send" : "receive",
            place};
  if (operation.kind == FlightRecorder::Norm)
    return {Category::Wait, "norm of the gradients", rank};
  if (operation.kind == FlightRecorder::EndOfStep)
    return {Category::Wait, "end of step", rank};
  return {Category::Wait,
          operation.kind == FlightRecorder::WaitSend ? "send" : "receive",
          place};
}

/// The file's events are the trace's; posts are waits of no length.
void FlightRecorder::write(const std::string &path, int64_t rank) const {
  using Clock = Trace::Clock;
  auto timeOf = [](int64_t nanoseconds) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(
        std::chrono::nanoseconds(nanoseconds)));
  };
  const int64_t now = nowInNanoseconds();
  Trace trace;
  int64_t step = -1;
  for (const Operation &operation : last()) {
    if (operation.step != step)
      trace.beginStep(step = operation.step);
    const auto begin = timeOf(operation.start);
    const auto end = timeOf(operation.end ? operation.end : now);
    trace.add(labelOf(operation, rank), begin, end);
  }
  replaceTrace(path, {trace.toJson(rank)});
}
