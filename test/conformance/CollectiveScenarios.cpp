//===- CollectiveScenarios.cpp - What collectives must do -----------------===//

#include "test/conformance/Checks.h"
#include "test/conformance/CollectiveCases.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Scenarios.h"

#include "runtime/core/Error.h"
#include "runtime/core/Mesh.h"
#include "runtime/net/GroupTransport.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>

using namespace pipewright::runtime;

namespace {
/// One collective of one member, with its memory.
struct Exchange {
  Exchange(const Collective &given, int64_t member, uint64_t salt)
      : what(given), member(member), salt(salt),
        range(rangeBefore(what, member, salt, Numbers::Rough)),
        scratch(scratchBytes(what, member), '\0') {}

  void begin(Collectives &group) {
    group.begin(what, range.data(), scratch.data());
  }
  void expectDone(const std::string &where) const {
    check(range == rangeAfter(what, member, salt, Numbers::Rough),
          "an " + what.text() + " over " + std::to_string(what.members()) +
              " members has the bits of the plain loop " + where);
  }

  const Collective what;
  const int64_t member;
  const uint64_t salt;
  std::string range, scratch;
};

/// A group and this rank's place in it.
struct Member {
  Member(Transport &whole, const std::vector<int64_t> &members)
      : group(whole, members), collectives(Collectives::open(group)) {}

  Exchange exchange(const Collective &what, uint64_t salt) const {
    return Exchange(what, group.rank(), salt);
  }

  GroupTransport group;
  std::unique_ptr<Collectives> collectives;
};
} // namespace

static bool isIn(const std::vector<int64_t> &members, int64_t rank) {
  return std::count(members.begin(), members.end(), rank) > 0;
}

/// So many ranks of the transport, the last first.
static std::vector<int64_t> lastRanks(const Transport &t, int64_t count) {
  std::vector<int64_t> members;
  for (int64_t i = 0; i < count; ++i)
    members.push_back(t.size() - 1 - i);
  return members;
}

/// All kinds, types and lengths, in groups of every size.
static void everyKind(Transport &t) {
  for (const int64_t size : {1, 2, 3, 4, 8}) {
    const std::vector<int64_t> members = lastRanks(t, size);
    if (size > t.size() || !isIn(members, t.rank()))
      continue;
    Member member(t, members);
    uint64_t salt = 0;
    for (const Collective &what : collectiveCases(size)) {
      Exchange one = member.exchange(what, ++salt);
      one.begin(*member.collectives);
      member.collectives->finish();
      one.expectDone("alone");
    }
  }
}

/// The numbers of these tests do tell one order from another.
static void orderMatters(Transport &t) {
  const Collective forth = {CollectiveKind::AllReduce, ElementType::F32,
                            evenBounds(1000, t.size())};
  // Backwards, a tree of four has the same sums.
  std::vector<int64_t> rotated;
  for (int64_t r = 0; r < t.size(); ++r)
    rotated.push_back((r + 1) % t.size());
  Member member(t, rotated);
  Exchange one(forth, t.rank(), 3);
  one.begin(*member.collectives);
  member.collectives->finish();
  check(t.size() < 3 ||
            one.range != rangeAfter(forth, t.rank(), 3, Numbers::Rough),
        "the sum depends on the order of the members");
}

/// Several begun at the same time finish in their order, all-reduces too.
static void manyAtOnce(Transport &t) {
  Member member(t, lastRanks(t, t.size()));
  std::deque<Exchange> all;
  for (const Collective &what : collectiveCases(t.size()))
    all.push_back(member.exchange(what, all.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].begin(*member.collectives);
    // Members run ahead of each other, by what they are.
    if (i % (t.rank() + 2) == 0)
      t.poll();
    if (i >= 5)
      member.collectives->finish();
  }
  for (int i = 0; i < 5; ++i)
    member.collectives->finish();
  for (const Exchange &each : all)
    each.expectDone("among others");
}

/// The groups of a mesh at once: each process is in one of each axis.
static void severalGroups(Transport &t) {
  const Mesh mesh = {t.size() / 4, 2, 2};
  std::deque<Member> groups;
  std::deque<Exchange> all;
  for (int round = 0; round < 3; ++round)
    for (const Axis axis : allAxes) {
      const std::vector<int64_t> members = mesh.groupOf(t.rank(), axis);
      if (round == 0)
        groups.emplace_back(t, members);
      Member &member = groups[static_cast<size_t>(axis)];
      all.push_back(
          member.exchange({round == 1 ? CollectiveKind::ReduceScatter
                                      : CollectiveKind::AllReduce,
                           round == 2 ? ElementType::BF16 : ElementType::F32,
                           evenBounds(999, member.group.size())},
                          all.size()));
      all.back().begin(*member.collectives);
    }
  // Groups do not wait for each other.
  for (size_t g = groups.size(); g-- > 0;)
    for (int round = 0; round < 3; ++round)
      groups[g].collectives->finish();
  for (const Exchange &each : all)
    each.expectDone("beside other groups");
}

/// Transfers between the same ranks are outstanding all the while, and sums of
/// the training loop come in between.
static void besideTransfers(Transport &t) {
  Member member(t, lastRanks(t, t.size()));
  const int64_t next = (t.rank() + 1) % t.size();
  const int64_t last = (t.rank() + t.size() - 1) % t.size();
  for (int64_t step = 0; step < 3; ++step) {
    int64_t received[2] = {-1, -1}, sent[2] = {10 * t.rank() + step, 7};
    t.postReceive(last, &received[0], 8);
    t.postReceive(last, &received[1], 8);
    t.postSend(next, &sent[0], 8);
    Exchange one = member.exchange({CollectiveKind::AllReduce, ElementType::F32,
                                    evenBounds(5000, t.size())},
                                   step);
    one.begin(*member.collectives);
    double total = 1;
    t.sumToAll(&total, 1);
    check(total == t.size(), "a sum comes in between");
    t.postSend(next, &sent[1], 8);
    member.collectives->finish();
    one.expectDone("between transfers");
    for (int i = 0; i < 2; ++i) {
      t.waitReceive(last);
      t.waitSend(next);
    }
    check(received[0] == 10 * last + step && received[1] == 7,
          "transfers arrive in their order");
  }
}

/// One that waits for a collective needs the others to begin it, and not to
/// wait for it: they may wait for something that comes after it.
static void waitsElsewhere(Transport &t) {
  for (const CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather}) {
    Member member(t, lastRanks(t, t.size()));
    const int64_t last = t.size() - 1;
    // An earlier one is not in the way, over in part or not at all.
    Exchange before =
        member.exchange({CollectiveKind::AllReduce, ElementType::BF16,
                         evenBounds(77, t.size())},
                        2);
    Exchange one = member.exchange(
        {kind, ElementType::F32, evenBounds(3000, t.size())}, 1);
    before.begin(*member.collectives);
    one.begin(*member.collectives);
    char byte = 0;
    if (t.rank() < last) {
      t.postReceive(last, &byte, 1);
      t.waitReceive(last);
    }
    member.collectives->finish();
    before.expectDone("while others wait for something else");
    member.collectives->finish();
    one.expectDone("while others wait for something else");
    for (int64_t r = 0; t.rank() == last && r < last; ++r) {
      t.postSend(r, &byte, 1);
      t.waitSend(r);
    }
    t.barrier();
  }
}

/// Both members hear who gave how much.
static void wrongSize(Transport &t) {
  if (t.rank() > 1)
    return t.barrier();
  Member member(t, {1, 0});
  // Rank 0, member 1, gives 15 numbers where rank 1 expects 10.
  const Collective what = {CollectiveKind::AllGather,
                           ElementType::F32,
                           {0, 10, t.rank() == 0 ? 25 : 20}};
  std::string range(4 * what.count(), '\0');
  const std::string error =
      errorOf([&] { member.collectives->run(what, range.data(), nullptr); });
  // Of a part, or of the whole.
  check(error.find("rank 0") != std::string::npos &&
            error.find("rank 1") != std::string::npos &&
            (error.find("40 bytes") != std::string::npos ||
             error.find("all-gather of 25 f32 numbers") != std::string::npos),
        "both members see sizes that differ, but: " + error);
  t.barrier();
}

/// Who waits, for which process, for what.
static void missingMember(Transport &t) {
  if (t.rank() > 1) {
    t.barrier();
    return t.barrier();
  }
  Member member(t, {1, 0});
  Exchange one = member.exchange(
      {CollectiveKind::ReduceScatter, ElementType::F32, {0, 16, 32}}, 1);
  if (t.rank() == 0) {
    t.setDeadline(0.3);
    one.begin(*member.collectives);
    const std::string error = errorOf([&] { member.collectives->finish(); });
    check(error.find("rank 0 waits for rank 1: part of 64 bytes of a "
                     "collective (nothing came within 0.3 s") == 0,
          "a deadline names the member that is missing, but: " + error);
    t.setDeadline(hangSeconds);
  }
  t.barrier();
  if (t.rank() == 1)
    one.begin(*member.collectives);
  member.collectives->finish();
  one.expectDone("after all");
  t.barrier();
}

/// What is no collective of the group is refused before anything is sent.
static void nonsense(Transport &t) {
  Member member(t, {t.rank()});
  auto refused = [&](const Collective &what) {
    return errorOf([&] { member.collectives->run(what, nullptr, nullptr); });
  };
  const ElementType f32 = ElementType::F32;
  for (const auto &[what, part] :
       {std::pair<Collective, const char *>{
            {CollectiveKind::AllReduce, f32, {0, 1, 2}},
            "all-reduce of 2 f32 numbers has parts for 2 members, but its "
            "group has 1"},
        {{CollectiveKind::AllReduce, f32, {1, 2}},
         "one behind the other from 0"},
        {{CollectiveKind::AllReduce, f32, {}}, "one behind the other from 0"},
        {{CollectiveKind::AllGather, ElementType::I64, {0, 1}}, "f32 or bf16"},
        {{CollectiveKind::Broadcast, f32, {0, 1}, 1}, "member 1 as its root"}})
    check(refused(what).find(part) != std::string::npos,
          std::string(part) + ", but: " + refused(what));
  check(errorOf([&] {
          member.collectives->finish();
        }).find("that it has not begun") != std::string::npos,
        "a collective that was not begun cannot be finished");
  for (const auto &[members, part] :
       {std::pair<std::vector<int64_t>, const char *>{{t.size()},
                                                      "as a member, but"},
        {{t.rank(), t.rank()}, "as a member twice"},
        {{}, "that it is no member of"}})
    check(errorOf([&] { GroupTransport group(t, members); }).find(part) !=
              std::string::npos,
          part);
}

const std::vector<Scenario> &pipewright::runtime::collectiveScenarios() {
  // The last one leaves a lane that nobody can use any more.
  static const std::vector<Scenario> all = {
      {"everyKind", everyKind},
      {"orderMatters", orderMatters},
      {"manyAtOnce", manyAtOnce},
      {"severalGroups", severalGroups},
      {"besideTransfers", besideTransfers},
      {"waitsElsewhere", waitsElsewhere},
      {"missingMember", missingMember},
      {"nonsense", nonsense},
      {"wrongSize", wrongSize}};
  return all;
}
