//===- StreamPlanner.cpp - Who waits for whom between streams -------------===//
//
// One pass over the program. Each byte knows who used it last on each stream,
// each stream knows how far it has seen the others come (a vector clock). What
// a use needs and its stream has not seen is waited for.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/StreamPlanner.h"

#include "passes/planning/RangeMap.h"

#include "llvm/ADT/STLExtras.h"

using namespace pipewright;

namespace {

/// Says, for each stream, up to which piece of work something holds: 1 + its
/// number, or 0 for none. It holds for all earlier work of the stream, too.
using Clock = std::vector<size_t>;

void join(Clock &into, const Clock &other) {
  for (auto [mine, theirs] : llvm::zip(into, other))
    mine = std::max(mine, theirs);
}

/// Who used some bytes last. Empty: nobody.
struct LastUses {
  Clock reads, writes;
};

class WaitPlanner {
public:
  explicit WaitPlanner(size_t streams) : seen(streams, Clock(streams)) {}

  /// What the next piece of work has to wait for.
  std::vector<size_t> add(const StreamWork &work);

private:
  Clock uses(const StreamWork &work);
  std::vector<size_t> missing(size_t stream, const Clock &needed) const;

  /// For each stream, the work whose end is known before its next work begins.
  std::vector<Clock> seen;
  /// For each piece of work, the work whose end is known once it is over; it
  /// is among them.
  std::vector<Clock> ends;
  RangeMap<LastUses> memory;
};

} // namespace

/// Notes what the work uses, and tells the last work of each stream that it
/// must come after.
Clock WaitPlanner::uses(const StreamWork &work) {
  Clock needed(seen.size());
  auto note = [&](Clock &last) {
    last.resize(seen.size());
    last[work.stream] = ends.size() + 1;
  };
  for (const ByteRange &range : work.reads)
    memory.visit(range.begin, range.bytes,
                 [&](int64_t, int64_t, LastUses &last) {
                   join(needed, last.writes);
                   note(last.reads);
                 });
  for (const ByteRange &range : work.writes)
    memory.visit(range.begin, range.bytes,
                 [&](int64_t, int64_t, LastUses &last) {
                   join(needed, last.writes);
                   join(needed, last.reads);
                   note(last.writes);
                 });
  return needed;
}

/// The needed work that the stream has not seen the end of, less what will be
/// seen by waiting for the rest.
std::vector<size_t> WaitPlanner::missing(size_t stream,
                                         const Clock &needed) const {
  auto isMissing = [&](size_t other) {
    return other != stream && needed[other] > seen[stream][other];
  };
  auto isImplied = [&](size_t other) {
    for (size_t third = 0; third < needed.size(); ++third)
      if (third != other && isMissing(third) &&
          ends[needed[third] - 1][other] >= needed[other])
        return true;
    return false;
  };
  std::vector<size_t> waits;
  for (size_t other = 0; other < needed.size(); ++other)
    if (isMissing(other) && !isImplied(other))
      waits.push_back(needed[other] - 1);
  llvm::sort(waits);
  return waits;
}

std::vector<size_t> WaitPlanner::add(const StreamWork &work) {
  std::vector<size_t> waits = missing(work.stream, uses(work));
  Clock &clock = seen[work.stream];
  for (size_t wait : waits)
    join(clock, ends[wait]);
  clock[work.stream] = ends.size() + 1;
  ends.push_back(clock);
  return waits;
}

std::vector<std::vector<size_t>>
pipewright::planWaits(llvm::ArrayRef<StreamWork> program) {
  size_t streams = 0;
  for (const StreamWork &work : program)
    streams = std::max(streams, work.stream + 1);
  WaitPlanner planner(streams);
  std::vector<std::vector<size_t>> waits;
  for (const StreamWork &work : program)
    waits.push_back(planner.add(work));
  return waits;
}
