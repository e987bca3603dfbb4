//===- SharedCollectives.cpp - Collectives in common memory ---------------===//

#include "runtime/net/SharedCollectives.h"
#include "runtime/core/Error.h"
#include "runtime/net/ThreadTransport.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace pipewright::runtime;

/// 64 KiB of f32: what a block reads and writes stays in the second-level
/// cache, and taking it costs nothing beside it.
static constexpr int64_t blockNumbers = 16384;

SharedMeeting::SharedMeeting(Collective given, size_t members)
    : what(std::move(given)), ranges(members), came(members) {
  int64_t total = 0;
  for (size_t m = 0; m < members; ++m) {
    firstBlocks.push_back(total);
    total += (what.ownedBy(m).count() + blockNumbers - 1) / blockNumbers;
  }
  firstBlocks.push_back(total);
}

SharedCollectives::SharedCollectives(ThreadTransport &transport,
                                     SharedGroup &group)
    : transport(transport), group(group) {
  const auto found =
      std::find(group.members.begin(), group.members.end(), transport.rank());
  self = found - group.members.begin();
}

SharedCollectives::~SharedCollectives() {
  std::unique_lock<std::mutex> lock(group.mutex);
  for (const std::shared_ptr<SharedMeeting> &meeting : begun) {
    meeting->isWithdrawn = true;
    meeting->next = meeting->blocks();
  }
  group.changed.wait(lock, [&] {
    return std::all_of(begun.begin(), begun.end(), [](const auto &meeting) {
      return meeting->helpers == 0;
    });
  });
}

void SharedCollectives::begin(const Collective &collective, void *data,
                              void *scratch) {
  (void)scratch;
  const size_t members = group.members.size();
  checkCollective(collective, static_cast<int64_t>(members));
  sent += sentBy(collective.kind, collective.bounds, collective.root, self,
                 byteWidth(collective.type));
  std::lock_guard<std::mutex> lock(group.mutex);
  const auto place = static_cast<size_t>(count++ - group.ended);
  if (place == group.meetings.size())
    group.meetings.push_back(
        std::make_shared<SharedMeeting>(collective, members));
  const std::shared_ptr<SharedMeeting> &meeting =
      begun.emplace_back(group.meetings[place]);
  meeting->ranges[self] = static_cast<char *>(data);
  meeting->came[self] = true;
  if (++meeting->arrivals == 1)
    meeting->first = self;
  if (meeting->difference.empty() && !(collective == meeting->what))
    meeting->difference =
        differenceText(group.members[self], collective,
                       group.members[meeting->first], meeting->what);
  if (meeting->arrivals < static_cast<int64_t>(members) &&
      meeting->difference.empty())
    return;
  meeting->met.store(true, std::memory_order_release);
  group.changed.notify_all();
}

/// A member that has not come; -1: all have.
int64_t SharedCollectives::findMissing(const SharedMeeting &meeting) const {
  const std::lock_guard<std::mutex> lock(group.mutex);
  const int64_t members = std::ssize(group.members);
  for (int64_t distance = 1; distance < members; ++distance)
    if (const int64_t m = (self + distance) % members; !meeting.came[m])
      return m;
  return -1;
}

/// What this member needs of another one, or reads of its own for it.
int64_t SharedCollectives::bytesOfPart(const SharedMeeting &meeting,
                                       int64_t member) const {
  const Collective &what = meeting.what;
  const bool isOwn = what.facts().reduces && what.isOwner(self);
  return what.ownedBy(isOwn ? self : member).count() * byteWidth(what.type);
}

/// The owner's numbers become the sums, or stay, and go to all others.
void SharedCollectives::takeBlock(const SharedMeeting &meeting, int64_t block) {
  const Collective &what = meeting.what;
  const auto after = std::upper_bound(meeting.firstBlocks.begin(),
                                      meeting.firstBlocks.end(), block);
  const int64_t owner = after - meeting.firstBlocks.begin() - 1;
  const OwnedNumbers owned = what.ownedBy(owner);
  const int64_t begin =
      owned.begin + (block - meeting.firstBlocks[owner]) * blockNumbers;
  const int64_t numbers = std::min(blockNumbers, owned.end - begin);
  const int64_t width = byteWidth(what.type);
  auto placeIn = [&](int64_t m) { return meeting.ranges[m] + begin * width; };
  const int64_t members = std::ssize(group.members);
  if (what.facts().reduces && members > 1) {
    addends.clear();
    for (int64_t m = 0; m < members; ++m)
      addends.push_back(placeIn(m));
    addNumbers(what.type, addends, numbers, placeIn(owner));
  }
  if (what.facts().replicates)
    for (int64_t m = 0; m < members; ++m)
      if (m != owner)
        std::memcpy(placeIn(m), placeIn(owner), numbers * width);
}

/// Takes blocks until there are none.
void SharedCollectives::help(SharedMeeting &meeting) {
  {
    const std::lock_guard<std::mutex> lock(group.mutex);
    ++meeting.helpers;
  }
  for (int64_t block = meeting.next++; block < meeting.blocks();
       block = meeting.next++)
    takeBlock(meeting, block);
  const std::lock_guard<std::mutex> lock(group.mutex);
  if (--meeting.helpers > 0)
    return;
  if (!meeting.isWithdrawn)
    meeting.over.store(true, std::memory_order_release);
  group.changed.notify_all();
}

void SharedCollectives::finish() {
  if (begun.empty())
    failNotBegun(transport);
  SharedMeeting &meeting = *begun.front();
  if (const int64_t missing = findMissing(meeting); missing >= 0)
    transport.waitUntil([&] { return meeting.hasMet(); }, group.changed,
                        group.mutex, Sign::Collective, group.members[missing],
                        bytesOfPart(meeting, missing));
  if (!meeting.difference.empty())
    fail(meeting.difference);
  if (!meeting.isOver())
    help(meeting);
  transport.waitUntil([&] { return meeting.isOver(); }, group.changed,
                      group.mutex, Sign::Collective, -1, 0);
  const std::lock_guard<std::mutex> lock(group.mutex);
  ++meeting.finished;
  begun.pop_front();
  while (!group.meetings.empty() &&
         group.meetings.front()->finished == std::ssize(group.members)) {
    group.meetings.pop_front();
    ++group.ended;
  }
}

Traffic SharedCollectives::takeSent() { return std::exchange(sent, {}); }
