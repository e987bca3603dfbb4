//===- Control.cpp - Branches, barriers, shuffles, votes ------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

#include <atomic>

using namespace pipewright::ptx;

using Kind = Instruction::Kind;

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {
enum class Shuffle : int64_t { Up, Down, Butterfly, Index };
} // namespace

/// Which lane to read, and whether it is within the segment (PTX ISA, shfl).
static int shuffleSource(Shuffle mode, int lane, uint32_t b, uint32_t c,
                         bool &inside) {
  const int by = b & 0x1F;
  const int clamp = c & 0x1F, segment = c >> 8 & 0x1F;
  const int most = (lane & segment) | (clamp & ~segment);
  const int least = lane & segment;
  int source = lane;
  switch (mode) {
  case Shuffle::Up:
    source = lane - by;
    inside = source >= most;
    break;
  case Shuffle::Down:
    source = lane + by;
    inside = source <= most;
    break;
  case Shuffle::Butterfly:
    source = lane ^ by;
    inside = source <= most;
    break;
  case Shuffle::Index:
    source = least | (by & ~segment);
    inside = source <= most;
    break;
  }
  return inside ? source : lane;
}

/// What a lane gets from one that does not take part: undefined on a GPU.
static constexpr uint32_t garbage = 0xFFFFFFFF;

static void runShuffle(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint32_t *a = warp.lanes<uint32_t>(in.operand[2]);
  const uint32_t *b = warp.lanes<uint32_t>(in.operand[3]);
  const uint32_t *c = warp.lanes<uint32_t>(in.operand[4]);
  const auto mode = static_cast<Shuffle>(in.immediate);
  alignas(64) uint32_t values[warpSize];
  uint32_t valid = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    bool inside = false;
    const int source = shuffleSource(mode, lane, b[lane], c[lane], inside);
    values[lane] = isSet(mask, source) ? a[source] : garbage;
    valid |= uint32_t(inside) << lane;
  }
  const uint32_t *results = values;
  forLanes(warp.lanes<uint32_t>(in.operand[0]), mask,
           [=](int lane) { return results[lane]; });
  if (in.operand[1] != none)
    setPredicate(warp, in.operand[1], valid, mask);
}

static bool selectShuffle(Selection &s) {
  if (!s.take("sync"))
    return false;
  const std::string_view mode = s.takeNext();
  if (mode == "up")
    s.in.immediate = static_cast<int64_t>(Shuffle::Up);
  else if (mode == "down")
    s.in.immediate = static_cast<int64_t>(Shuffle::Down);
  else if (mode == "bfly")
    s.in.immediate = static_cast<int64_t>(Shuffle::Butterfly);
  else if (mode == "idx")
    s.in.immediate = static_cast<int64_t>(Shuffle::Index);
  else
    return false;
  if (s.takeType() != Type::B32)
    return false;
  s.expectOperands(5);
  const std::string_view results = s.statement.operands[0];
  const size_t bar = results.find('|');
  s.in.operand[0] = s.source(results.substr(0, bar), Type::B32);
  s.in.operand[1] = none;
  if (bar != results.npos)
    s.in.operand[1] = s.source(results.substr(bar + 1), Type::Pred);
  for (size_t i = 1; i <= 3; ++i)
    s.in.operand[1 + i] = s.source(i, Type::B32);
  s.in.operand[8] = s.source(4, Type::B32);
  s.in.kind = Kind::Converged;
  s.in.run = runShuffle;
  return true;
}

//===----------------------------------------------------------------------===//
// Votes and reductions over a warp
//===----------------------------------------------------------------------===//

namespace {
enum class Vote : int64_t { All, Any, Uniform, Ballot };
enum class Reduce : int64_t { Add, Min, Max, And, Or, Xor };
} // namespace

static void runVote(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint32_t yes =
      (predicate(warp, in.operand[1]) ^ (in.negated ? allLanes : 0)) & mask;
  switch (static_cast<Vote>(in.immediate)) {
  case Vote::All:
    return setPredicate(warp, in.operand[0], yes == mask ? allLanes : 0, mask);
  case Vote::Any:
    return setPredicate(warp, in.operand[0], yes ? allLanes : 0, mask);
  case Vote::Uniform:
    return setPredicate(warp, in.operand[0], yes == mask || !yes ? allLanes : 0,
                        mask);
  case Vote::Ballot:
    return forLanes(warp.lanes<uint32_t>(in.operand[0]), mask,
                    [=](int) { return yes; });
  }
}

static bool selectVote(Selection &s) {
  if (!s.take("sync"))
    return false;
  const std::string_view mode = s.takeNext();
  Vote vote = Vote::Ballot;
  if (mode == "all")
    vote = Vote::All;
  else if (mode == "any")
    vote = Vote::Any;
  else if (mode == "uni")
    vote = Vote::Uniform;
  else if (mode != "ballot")
    return false;
  const Type type = s.takeType();
  if (type != (vote == Vote::Ballot ? Type::B32 : Type::Pred))
    return false;
  s.expectOperands(3);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.predicate(s.statement.operands[1], s.in.negated);
  s.in.operand[8] = s.source(2, Type::B32);
  s.in.immediate = static_cast<int64_t>(vote);
  s.in.kind = Kind::Converged;
  s.in.run = runVote;
  return true;
}

template <class T>
static void runReduce(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  T result = a[std::countr_zero(mask)];
  for (int lane = std::countr_zero(mask) + 1; lane < warpSize; ++lane) {
    if (!isSet(mask, lane))
      continue;
    switch (static_cast<Reduce>(in.immediate)) {
    case Reduce::Add:
      result = static_cast<T>(uint32_t(result) + uint32_t(a[lane]));
      break;
    case Reduce::Min:
      result = a[lane] < result ? a[lane] : result;
      break;
    case Reduce::Max:
      result = a[lane] > result ? a[lane] : result;
      break;
    case Reduce::And:
      result &= a[lane];
      break;
    case Reduce::Or:
      result |= a[lane];
      break;
    case Reduce::Xor:
      result ^= a[lane];
      break;
    }
  }
  forLanes(warp.lanes<T>(in.operand[0]), mask, [=](int) { return result; });
}

static bool selectReduce(Selection &s) {
  static const std::map<std::string_view, Reduce> all = {
      {"add", Reduce::Add}, {"min", Reduce::Min}, {"max", Reduce::Max},
      {"and", Reduce::And}, {"or", Reduce::Or},   {"xor", Reduce::Xor}};
  if (!s.take("sync"))
    return false;
  auto found = all.find(s.takeNext());
  if (found == all.end())
    return false;
  const Type type = s.takeType();
  if (bytesOf(type) != 4 || isFloat(type))
    return false;
  s.expectOperands(3);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.operand[8] = s.source(2, Type::B32);
  s.in.immediate = static_cast<int64_t>(found->second);
  s.in.kind = Kind::Converged;
  s.in.run = type == Type::S32 ? runReduce<int32_t> : runReduce<uint32_t>;
  return true;
}

static void runActiveMask(Warp &warp, const Instruction &in, uint32_t mask) {
  forLanes(warp.lanes<uint32_t>(in.operand[0]), mask,
           [=](int) { return mask; });
}

//===----------------------------------------------------------------------===//
// Barriers, fences, ends
//===----------------------------------------------------------------------===//

static void runNothing(Warp &, const Instruction &, uint32_t) {}

static void runTrap(Warp &warp, const Instruction &in, uint32_t mask) {
  raise(Fault::Kind::Trap, warp, in, std::countr_zero(mask), "trap");
}

/// "bar.sync 0", "barrier.cta.sync.aligned 0": all threads of the block.
static bool selectBarrier(Selection &s) {
  s.skip({"cta", "aligned"});
  if (s.take("warp")) {
    if (!s.take("sync"))
      return false;
    s.expectOperands(1);
    s.in.operand[8] = s.source(0, Type::B32);
    s.in.kind = Kind::Converged;
    s.in.run = runNothing;
    return true;
  }
  if (!s.take("sync"))
    return false;
  if (s.operandCount() > 1)
    s.fail("barriers of a part of the block are not supported");
  if (s.operandCount() == 1)
    s.in.immediate = static_cast<int64_t>(s.integer(s.statement.operands[0]));
  s.in.kind = Kind::Barrier;
  return true;
}

static void runFence(Warp &, const Instruction &, uint32_t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

static bool selectFence(Selection &s) {
  s.skip({"cta", "gl", "gpu", "sys", "sc", "acq_rel", "acquire", "release",
          "level", "cluster"});
  s.expectOperands(0);
  s.in.run = runFence;
  return true;
}

static bool selectBranch(Selection &s) {
  s.take("uni");
  if (s.base == "bra") {
    s.expectOperands(1);
    s.builder.branchTo(s.statement.operands[0], s.in);
    s.in.kind = Kind::Branch;
    return true;
  }
  if (!s.take("idx"))
    return false;
  s.expectOperands(2);
  s.in.operand[0] = s.source(0, Type::U32);
  s.builder.branchToAny(s.statement.operands[1], s.in);
  s.in.kind = Kind::BranchIndex;
  return true;
}

bool pipewright::ptx::selectControl(Selection &s) {
  if (s.base == "bra" || s.base == "brx")
    return selectBranch(s);
  if (s.base == "ret" || s.base == "exit") {
    s.take("uni");
    s.expectOperands(0);
    s.in.kind = Kind::Exit;
    if (s.base == "ret" && s.builder.isInCall()) {
      s.in.kind = Kind::Branch;
      s.builder.branchToReturn(s.in);
    }
    return true;
  }
  if (s.base == "trap" || s.base == "brkpt") {
    s.expectOperands(0);
    s.in.run = runTrap;
    return true;
  }
  if (s.base == "bar" || s.base == "barrier")
    return selectBarrier(s);
  if (s.base == "membar" || s.base == "fence")
    return selectFence(s);
  if (s.base == "shfl")
    return selectShuffle(s);
  if (s.base == "vote")
    return selectVote(s);
  if (s.base == "redux")
    return selectReduce(s);
  if (s.base == "activemask" && s.takeType() == Type::B32) {
    s.expectOperands(1);
    s.in.operand[0] = s.target(0, Type::B32);
    s.in.run = runActiveMask;
    return true;
  }
  if (s.base == "nanosleep" && s.takeType() == Type::U32) {
    s.in.run = runNothing;
    return true;
  }
  if (s.base == "griddepcontrol") {
    s.skip({"wait", "launch_dependents"});
    s.in.run = runNothing;
    return true;
  }
  return false;
}
