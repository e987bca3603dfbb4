//===- MessageCollectives.cpp - Collectives by messages -------------------===//

#include "runtime/net/MessageCollectives.h"

using namespace pipewright::runtime;

/// Each member begins with the one behind it, so that not all of them want the
/// same one first. Members that own nothing by their kind exchange nothing with
/// each other; a part of no length is exchanged, so that lengths that differ
/// are seen.
template <class Receive, class Send>
void MessageCollectives::exchange(const Collective &what, bool toOwners,
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
void MessageCollectives::postToOwners(const Begun &op) {
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
void MessageCollectives::postFromOwners(const Begun &op, Lane lane) {
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

/// Those that are over already are not waited for again.
void MessageCollectives::wait(Begun &op, bool toOwners, Lane lane) {
  int64_t number = 0;
  auto waitOnce = [&](auto waitForIt) {
    if (number++ < op.over)
      return;
    waitForIt();
    ++op.over;
  };
  exchange(
      *op.collective, toOwners,
      [&](int64_t m) { waitOnce([&] { group.waitReceive({m, lane}); }); },
      [&](int64_t m) { waitOnce([&] { group.waitSend({m, lane}); }); });
}

/// Others' numbers lie in the scratch memory, in the order of the members.
void MessageCollectives::addOwned(const Begun &op) {
  const Collective &what = *op.collective;
  const OwnedNumbers owned = what.ownedBy(group.rank());
  const int64_t width = byteWidth(what.type);
  char *own = op.data + owned.begin * width;
  std::vector<const void *> members;
  for (int64_t m = 0; m < group.size(); ++m)
    members.push_back(m == group.rank()
                          ? own
                          : op.scratch + (m - (m > group.rank())) *
                                             owned.count() * width);
  if (group.size() > 1)
    addNumbers(what.type, members, owned.count(), own);
}

void MessageCollectives::begin(const Collective &collective, void *data,
                               void *scratch) {
  checkCollective(collective, group.size());
  const Begun &op = begun.emplace_back(Begun{
      &collective, static_cast<char *>(data), static_cast<char *>(scratch)});
  if (collective.facts().reduces)
    postToOwners(op);
  else
    postFromOwners(op, Lane::Collectives);
}

void MessageCollectives::finish() {
  if (begun.empty())
    failNotBegun(group);
  Begun &op = begun.front();
  const CollectiveFacts &facts = op.collective->facts();
  if (!op.isAdded)
    wait(op, facts.reduces, Lane::Collectives);
  if (facts.reduces && !op.isAdded) {
    addOwned(op);
    op.isAdded = true;
    op.over = 0;
    if (facts.replicates)
      postFromOwners(op, Lane::SecondHalves);
  }
  if (facts.reduces && facts.replicates)
    wait(op, /*toOwners=*/false, Lane::SecondHalves);
  begun.pop_front();
}
