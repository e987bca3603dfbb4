//===- CollectiveParts.h - Which part of a range is whose -------*- C++ -*-===//
//
// The members of a group cut a range of numbers into one part for each. The
// compiler plans memory for a collective with the same arithmetic with which
// the runtime runs it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H
#define PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H

#include "runtime/calls/CollectiveKinds.h"
#include "runtime/core/Traffic.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright::runtime {

/// Where each member's part of a range begins, and at last where the last one's
/// ends. Parts are as long as can be, the last ones shorter.
inline std::vector<int64_t> evenBounds(int64_t count, int64_t members) {
  const int64_t part = (count + members - 1) / members;
  std::vector<int64_t> bounds;
  for (int64_t m = 0; m <= members; ++m)
    bounds.push_back(std::min(m * part, count));
  return bounds;
}

/// The numbers of a range that a member owns.
struct OwnedNumbers {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t count() const { return end - begin; }
};

/// `root` is a member, for kinds that have one.
inline OwnedNumbers ownedBy(CollectiveKind kind,
                            const std::vector<int64_t> &bounds, int64_t root,
                            int64_t member) {
  if (!factsOf(kind).rooted)
    return {bounds[member], bounds[member + 1]};
  return {0, member == root ? bounds.back() : 0};
}

/// How many numbers a member gets from the others to add them to its own.
inline int64_t numbersFromOthers(CollectiveKind kind,
                                 const std::vector<int64_t> &bounds,
                                 int64_t root, int64_t member) {
  if (!factsOf(kind).reduces)
    return 0;
  const auto members = static_cast<int64_t>(bounds.size()) - 1;
  return (members - 1) * ownedBy(kind, bounds, root, member).count();
}

/// What a member gives to others, of numbers of `width` bytes: what somebody
/// else owns goes to its owner, what it owns to all others. A part of no length
/// is a message, too.
inline Traffic sentBy(CollectiveKind kind, const std::vector<int64_t> &bounds,
                      int64_t root, int64_t member, int64_t width) {
  const CollectiveFacts &facts = factsOf(kind);
  const auto members = static_cast<int64_t>(bounds.size()) - 1;
  auto bytesOf = [&](int64_t of) {
    return width * ownedBy(kind, bounds, root, of).count();
  };
  auto isOwner = [&](int64_t of) { return !facts.rooted || of == root; };
  Traffic sent;
  if (facts.reduces)
    for (int64_t other = 0; other < members; ++other)
      if (other != member && isOwner(other))
        sent += {1, bytesOf(other)};
  if ((!facts.reduces || facts.replicates) && isOwner(member))
    sent += {members - 1, (members - 1) * bytesOf(member)};
  return sent;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEPARTS_H
