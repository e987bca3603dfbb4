//===- Collectives.cpp - What the members of a group do together ----------===//

#include "runtime/net/Collectives.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"

#include <algorithm>
#include <array>
#include <bit>

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

std::string Collective::text() const {
  return std::string(facts().text) + " of " + std::to_string(count()) + " " +
         typeText(type) + " numbers";
}

std::string pipewright::runtime::differenceText(int64_t rank,
                                                const Collective &what,
                                                int64_t other,
                                                const Collective &theirs) {
  return processName(rank) + " gives the " + what.text() + " where " +
         processName(other) + " gives the " + theirs.text() +
         (what.text() == theirs.text() ? " of another root or other parts"
                                       : "");
}

int64_t pipewright::runtime::scratchBytes(const Collective &collective,
                                          int64_t member) {
  return numbersFromOthers(collective.kind, collective.bounds, collective.root,
                           member) *
         byteWidth(collective.type);
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

/// As the nodes of a binary tree over the members in their order; where these
/// are no power of two, what is left on the right is added from the right.
/// In blocks whose sums stay in the first-level cache: `aside[l]` is the sum of
/// 2^l members that waits for those of as many behind them.
template <class Number>
static void addPartsOf(const Collective &collective, int64_t member,
                       Number *data, const Number *scratch) {
  constexpr int64_t block = 512;
  const int64_t members = collective.members();
  std::vector<std::array<float, block>> aside(
      std::bit_width(static_cast<uint64_t>(members)));
  std::array<float, block> sums;
  const OwnedNumbers owned = collective.ownedBy(member);
  const int64_t part = owned.count();
  Number *own = data + owned.begin;
  for (int64_t begin = 0; begin < part && members > 1; begin += block) {
    const int64_t count = std::min(block, part - begin);
    const auto add = [&](const std::array<float, block> &before) {
      for (int64_t i = 0; i < count; ++i)
        sums[i] = before[i] + sums[i];
    };
    for (int64_t m = 0; m < members; ++m) {
      const Number *from =
          m == member ? own : scratch + (m - (m > member)) * part;
      from += begin;
      for (int64_t i = 0; i < count; ++i)
        sums[i] = widen(from[i]);
      const int complete = std::countr_one(static_cast<uint64_t>(m));
      for (int level = 0; level < complete; ++level)
        add(aside[level]);
      if (m + 1 < members)
        std::copy_n(sums.data(), count, aside[complete].data());
    }
    // The last member's node is complete; those on its left are not yet added.
    const auto last = static_cast<uint64_t>(members - 1);
    for (size_t level = std::countr_one(last); level < aside.size(); ++level)
      if (last >> level & 1)
        add(aside[level]);
    store(sums.data(), count, own + begin);
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
/// same one first. Members that own nothing by their kind exchange nothing with
/// each other; a part of no length is exchanged, so that lengths that differ
/// are seen.
template <class Receive, class Send>
void Collectives::exchange(const Collective &what, bool toOwners,
                           const Receive &receive, const Send &send) {
  const int64_t self = group.rank(), members = group.size();
  for (int64_t distance = 1; distance < members; ++distance)
    if (const int64_t m = (self + distance) % members;
        what.isOwner(toOwners ? self : m))
      receive(m);
  for (int64_t distance = 1; distance < members; ++distance)
    if (const int64_t m = (self + distance) % members;
        what.isOwner(toOwners ? m : self))
      send(m);
}

/// What somebody owns goes to its owner, from everybody.
void Collectives::postToOwners(const Begun &op) {
  const Collective &what = *op.collective;
  const int64_t self = group.rank(), width = byteWidth(what.type);
  const int64_t own = what.ownedBy(self).count() * width;
  exchange(
      what, /*toOwners=*/true,
      [&](int64_t m) {
        group.postReceive({m, Lane::Collectives},
                          op.scratch + (m - (m > self)) * own, own);
      },
      [&](int64_t m) {
        const OwnedNumbers theirs = what.ownedBy(m);
        group.postSend({m, Lane::Collectives}, op.data + theirs.begin * width,
                       theirs.count() * width);
      });
}

/// What somebody owns goes from its owner to everybody.
void Collectives::postFromOwners(const Begun &op, Lane lane) {
  const Collective &what = *op.collective;
  const int64_t width = byteWidth(what.type);
  const OwnedNumbers own = what.ownedBy(group.rank());
  exchange(
      what, /*toOwners=*/false,
      [&](int64_t m) {
        const OwnedNumbers theirs = what.ownedBy(m);
        group.postReceive({m, lane}, op.data + theirs.begin * width,
                          theirs.count() * width);
      },
      [&](int64_t m) {
        group.postSend({m, lane}, op.data + own.begin * width,
                       own.count() * width);
      });
}

void Collectives::wait(const Collective &what, bool toOwners, Lane lane) {
  exchange(
      what, toOwners, [&](int64_t m) { group.waitReceive({m, lane}); },
      [&](int64_t m) { group.waitSend({m, lane}); });
}

void Collectives::begin(const Collective &collective, void *data,
                        void *scratch) {
  checkCollective(collective, group.size());
  const Begun &op = begun.emplace_back(Begun{
      &collective, static_cast<char *>(data), static_cast<char *>(scratch)});
  if (collective.facts().reduces)
    postToOwners(op);
  else
    postFromOwners(op, Lane::Collectives);
}

void Collectives::finish() {
  if (begun.empty())
    fail(processName(group.nameOf(group.rank())),
         " finishes a collective that it has not begun");
  const Begun op = begun.front();
  begun.pop_front();
  const Collective &what = *op.collective;
  const CollectiveFacts &facts = what.facts();
  wait(what, facts.reduces, Lane::Collectives);
  if (!facts.reduces)
    return;
  addParts(what, group.rank(), op.data, op.scratch);
  if (!facts.replicates)
    return;
  postFromOwners(op, Lane::SecondHalves);
  wait(what, /*toOwners=*/false, Lane::SecondHalves);
}
