//===- Collectives.cpp - What the members of a group do together ----------===//

#include "runtime/net/Collectives.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"

#include <algorithm>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// What a collective is
//===----------------------------------------------------------------------===//

bool Collective::isEven() const {
  for (int64_t m = 1; m < members(); ++m)
    if (partOf(m) != partOf(0))
      return false;
  return true;
}

const char *pipewright::runtime::textOf(Collective::Kind kind) {
  switch (kind) {
  case Collective::AllReduce:
    return "all-reduce";
  case Collective::ReduceScatter:
    return "reduce-scatter";
  case Collective::AllGather:
    return "all-gather";
  case Collective::Broadcast:
    return "broadcast";
  }
  return "collective of no kind";
}

std::string Collective::text() const {
  return std::string(textOf(kind)) + " of " + std::to_string(count()) + " " +
         typeText(type) + " numbers";
}

std::string pipewright::runtime::differenceText(int64_t rank,
                                                const Collective &what,
                                                int64_t other,
                                                const Collective &theirs) {
  return "rank " + std::to_string(rank) + " gives the " + what.text() +
         " where rank " + std::to_string(other) + " gives the " +
         theirs.text() +
         (what.text() == theirs.text() ? " of another root or other parts"
                                       : "");
}

static bool adds(const Collective &collective) {
  return collective.kind == Collective::AllReduce ||
         collective.kind == Collective::ReduceScatter;
}

int64_t pipewright::runtime::scratchBytes(const Collective &collective,
                                          int64_t member) {
  return adds(collective) ? numbersFromOthers(collective.bounds, member) *
                                byteWidth(collective.type)
                          : 0;
}

void pipewright::runtime::checkCollective(const Collective &collective,
                                          int64_t members) {
  const std::vector<int64_t> &bounds = collective.bounds;
  if (bounds.empty() || bounds.front() != 0 ||
      !std::is_sorted(bounds.begin(), bounds.end()))
    fail("the parts of a collective do not lie one behind the other from 0 on");
  if (collective.members() != members)
    fail("the ", collective.text(), " has parts for ", collective.members(),
         " members, but its group has ", members);
  if (collective.type != ElementType::F32 &&
      collective.type != ElementType::BF16)
    fail("a collective is of f32 or bf16 numbers, not of others");
  if (collective.root < 0 || collective.root >= members)
    fail("the ", collective.text(), " has member ", collective.root,
         " as its root, but its group has ", members);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static void store(const float *sums, int64_t count, float *to) {
  std::copy_n(sums, count, to);
}
static void store(const float *sums, int64_t count, BFloat16 *to) {
  narrow(sums, count, to);
}

/// In blocks whose sums stay in the first-level cache.
template <class Number>
static void addPartsOf(const Collective &collective, int64_t member,
                       Number *data, const Number *scratch) {
  constexpr int64_t block = 1024;
  float sums[block];
  const int64_t members = collective.members();
  const int64_t part = collective.partOf(member);
  Number *own = data + collective.bounds[member];
  for (int64_t begin = 0; begin < part && members > 1; begin += block) {
    const int64_t count = std::min(block, part - begin);
    for (int64_t m = 0; m < members; ++m) {
      const Number *from =
          m == member ? own : scratch + (m - (m > member)) * part;
      from += begin;
      if (m == 0)
        for (int64_t i = 0; i < count; ++i)
          sums[i] = widen(from[i]);
      else
        for (int64_t i = 0; i < count; ++i)
          sums[i] += widen(from[i]);
    }
    store(sums, count, own + begin);
  }
}

void pipewright::runtime::addParts(const Collective &collective, int64_t member,
                                   void *data, const void *scratch) {
  if (collective.type == ElementType::BF16)
    addPartsOf(collective, member, static_cast<BFloat16 *>(data),
               static_cast<const BFloat16 *>(scratch));
  else
    addPartsOf(collective, member, static_cast<float *>(data),
               static_cast<const float *>(scratch));
}

//===----------------------------------------------------------------------===//
// The direct exchange
//===----------------------------------------------------------------------===//

/// Each member begins with the one behind it, so that not all of them want the
/// same one first.
template <class Body>
void Collectives::forOthers(const Body &body) {
  const int64_t self = group.rank(), members = group.size();
  for (int64_t distance = 1; distance < members; ++distance)
    body((self + distance) % members);
}

/// Everybody's part goes to its owner.
void Collectives::postReduce(const Begun &op) {
  const Collective &what = *op.collective;
  const int64_t self = group.rank(), width = byteWidth(what.type);
  const int64_t own = what.partOf(self) * width;
  forOthers([&](int64_t m) {
    group.postReceive({m, Lane::Collectives},
                      op.scratch + (m - (m > self)) * own, own);
  });
  forOthers([&](int64_t m) {
    group.postSend({m, Lane::Collectives}, op.data + what.bounds[m] * width,
                   what.partOf(m) * width);
  });
}

/// The own part goes to everybody.
void Collectives::postGather(const Begun &op, Lane lane) {
  const Collective &what = *op.collective;
  const int64_t self = group.rank(), width = byteWidth(what.type);
  forOthers([&](int64_t m) {
    group.postReceive({m, lane}, op.data + what.bounds[m] * width,
                      what.partOf(m) * width);
  });
  forOthers([&](int64_t m) {
    group.postSend({m, lane}, op.data + what.bounds[self] * width,
                   what.partOf(self) * width);
  });
}

/// Members other than the root exchange nothing with each other.
void Collectives::postBroadcast(const Begun &op) {
  const Collective &what = *op.collective;
  const int64_t bytes = what.count() * byteWidth(what.type);
  if (group.rank() != what.root)
    return group.postReceive({what.root, Lane::Collectives}, op.data, bytes);
  forOthers([&](int64_t m) {
    group.postSend({m, Lane::Collectives}, op.data, bytes);
  });
}

void Collectives::finishBroadcast(const Collective &what) {
  if (group.rank() != what.root)
    return group.waitReceive({what.root, Lane::Collectives});
  forOthers([&](int64_t m) { group.waitSend({m, Lane::Collectives}); });
}

/// One message from each member, and one to each, are outstanding.
void Collectives::waitForAll(Lane lane) {
  forOthers([&](int64_t m) { group.waitReceive({m, lane}); });
  forOthers([&](int64_t m) { group.waitSend({m, lane}); });
}

void Collectives::begin(const Collective &collective, void *data,
                        void *scratch) {
  checkCollective(collective, group.size());
  const Begun &op = begun.emplace_back(Begun{
      &collective, static_cast<char *>(data), static_cast<char *>(scratch)});
  if (adds(collective))
    postReduce(op);
  else if (collective.kind == Collective::AllGather)
    postGather(op, Lane::Collectives);
  else
    postBroadcast(op);
}

void Collectives::finish() {
  if (begun.empty())
    fail("rank ", group.nameOf(group.rank()),
         " finishes a collective that it has not begun");
  const Begun op = begun.front();
  begun.pop_front();
  const Collective &what = *op.collective;
  if (what.kind == Collective::Broadcast)
    return finishBroadcast(what);
  waitForAll(Lane::Collectives);
  if (!adds(what))
    return;
  addParts(what, group.rank(), op.data, op.scratch);
  if (what.kind == Collective::ReduceScatter)
    return;
  postGather(op, Lane::SecondHalves);
  waitForAll(Lane::SecondHalves);
}
