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
  const Collective &what = op.collective;
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
  const Collective &what = op.collective;
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

/// `over` messages are over already, and not waited for again. Unless the wait
/// may block, it ends before the first one for which it would have to. Whether
/// all are over.
bool MessageCollectives::wait(const Begun &op, bool toOwners, Lane lane,
                              int64_t &over, bool blocks) {
  int64_t number = 0;
  auto waitOnce = [&](int64_t m, bool isSend) {
    const Line line(m, lane);
    if (number++ != over || (!blocks && !group.isOver(line, isSend)))
      return;
    if (isSend)
      group.waitSend(line);
    else
      group.waitReceive(line);
    ++over;
  };
  exchange(
      op.collective, toOwners, [&](int64_t m) { waitOnce(m, false); },
      [&](int64_t m) { waitOnce(m, true); });
  return over == number;
}

/// Others' numbers lie in the scratch memory, in the order of the members.
void MessageCollectives::addOwned(const Begun &op) {
  const Collective &what = op.collective;
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

/// Until the sums of what this member owns are on their way to the others, or
/// there are none and all is over; whether it came so far.
bool MessageCollectives::goOn(Begun &op, bool blocks) {
  const CollectiveFacts &facts = op.collective.facts();
  if (op.isAdded)
    return true;
  if (!wait(op, facts.reduces, Lane::Collectives, op.over, blocks))
    return false;
  if (!facts.reduces)
    return true;
  addOwned(op);
  op.isAdded = true;
  if (facts.replicates)
    postFromOwners(op, Lane::SecondHalves);
  return true;
}

void MessageCollectives::begin(const Collective &collective, void *data,
                               void *scratch) {
  checkCollective(collective, group.size());
  Begun &op = begun.emplace_back(*this, collective, data, scratch);
  const CollectiveFacts &facts = collective.facts();
  if (facts.reduces)
    postToOwners(op);
  else
    postFromOwners(op, Lane::Collectives);
  group.addErrand(op);
}

void MessageCollectives::finish() {
  if (begun.empty())
    failNotBegun(group);
  Begun &op = begun.front();
  const CollectiveFacts &facts = op.collective.facts();
  const Transport::ErrandsRest rest(group);
  try {
    goOn(op, true);
    if (facts.reduces && facts.replicates)
      wait(op, /*toOwners=*/false, Lane::SecondHalves, op.secondOver, true);
  } catch (const DeadlinePassed &) {
    throw;
  } catch (...) {
    // It will never be over.
    group.removeErrand(op);
    throw;
  }
  group.removeErrand(op);
  begun.pop_front();
}

MessageCollectives::~MessageCollectives() {
  for (Begun &op : begun)
    group.removeErrand(op);
}
