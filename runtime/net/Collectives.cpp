//===- Collectives.cpp - What the members of a group do together ----------===//

#include "runtime/net/Collectives.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/MessageCollectives.h"
#include "runtime/net/Transport.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

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

void pipewright::runtime::failNotBegun(const Transport &group) {
  fail(processName(group.nameOf(group.rank())),
       " finishes a collective that it has not begun");
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
static void addNumbersOf(const std::vector<const void *> &members,
                         int64_t numbers, Number *to) {
  constexpr int64_t block = 512;
  std::vector<std::array<float, block>> aside(std::bit_width(members.size()));
  std::array<float, block> sums;
  for (int64_t begin = 0; begin < numbers; begin += block) {
    const int64_t count = std::min(block, numbers - begin);
    const auto add = [&](const std::array<float, block> &before) {
      for (int64_t i = 0; i < count; ++i)
        sums[i] = before[i] + sums[i];
    };
    for (size_t m = 0; m < members.size(); ++m) {
      const Number *from = static_cast<const Number *>(members[m]) + begin;
      for (int64_t i = 0; i < count; ++i)
        sums[i] = widen(from[i]);
      const int complete = std::countr_one(m);
      for (int level = 0; level < complete; ++level)
        add(aside[level]);
      if (m + 1 < members.size())
        std::copy_n(sums.data(), count, aside[complete].data());
    }
    // The last member's node is complete; those on its left are not yet added.
    const size_t last = members.size() - 1;
    for (size_t level = std::countr_one(last); level < aside.size(); ++level)
      if (last >> level & 1)
        add(aside[level]);
    store(sums.data(), count, to + begin);
  }
}

void pipewright::runtime::addNumbers(ElementType type,
                                     const std::vector<const void *> &members,
                                     int64_t count, void *sums) {
  if (type == ElementType::BF16)
    addNumbersOf(members, count, static_cast<BFloat16 *>(sums));
  else
    addNumbersOf(members, count, static_cast<float *>(sums));
}

std::unique_ptr<Collectives> Collectives::open(Transport &group) {
  std::vector<int64_t> all(group.size());
  std::iota(all.begin(), all.end(), 0);
  if (std::unique_ptr<Collectives> shared = group.openShared(all))
    return shared;
  return std::make_unique<MessageCollectives>(group);
}
