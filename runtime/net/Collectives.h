//===- Collectives.h - What the members of a group do together -*- C++ -*-===//
//
// What runtime/calls/CollectiveKinds.h lists, of f32 or bf16 numbers. All
// members of a group give the same collectives in the same order.
//
// A range of numbers is cut into one part for each member, which may have
// different lengths, or none; or the root owns all of it. Where numbers are
// added, owners get theirs from all ranges, and add: the first member's
// numbers, plus the second's, and so on. bf16 numbers are added in f32 and
// rounded once. So the bits of a sum depend on the numbers, on their order by
// member and on nothing else: not on how the range is cut, not on the
// transport, not on who comes first. Then owners hand out what they have, to
// who is to have it.
//
// Everything is one direct exchange of messages: over threads, MPI and TCP by
// posts and waits (here), between GPUs by what DeviceLinks has.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H
#define PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H

#include "runtime/calls/CollectiveKinds.h"
#include "runtime/calls/CollectiveParts.h"
#include "runtime/core/ElementType.h"
#include "runtime/net/Transport.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// What all members have to say alike.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  /// F32 or BF16.
  ElementType type = ElementType::F32;
  /// Where each member's part begins, and at last where the last one's ends:
  /// the first is 0, none is less than the one before it.
  std::vector<int64_t> bounds;
  /// The member that owns everything, where the kind has one.
  int64_t root = 0;

  int64_t members() const { return static_cast<int64_t>(bounds.size()) - 1; }
  /// Numbers in the whole range.
  int64_t count() const { return bounds.back(); }
  int64_t partOf(int64_t member) const {
    return bounds[member + 1] - bounds[member];
  }
  OwnedNumbers ownedBy(int64_t member) const {
    return runtime::ownedBy(kind, bounds, root, member);
  }
  bool isOwner(int64_t member) const {
    return !facts().rooted || member == root;
  }
  const CollectiveFacts &facts() const { return factsOf(kind); }
  /// Whether all parts have the same length.
  bool isEven() const;

  /// "reduce-scatter of 4096 bf16 numbers".
  std::string text() const;

  friend bool operator==(const Collective &, const Collective &) = default;
};

/// Bytes of memory that a member needs beside the range, for as long as the
/// collective is under way; at an address that is a multiple of 4.
int64_t scratchBytes(const Collective &collective, int64_t member);

/// Throws an Error where a collective is none of a group of so many members.
void checkCollective(const Collective &collective, int64_t members);

/// What ranks hear that give different collectives where one is meant.
std::string differenceText(int64_t rank, const Collective &what, int64_t other,
                           const Collective &theirs);

/// Adds what a member owns of its own range and the same of the others', which
/// lies in `scratch` one after the other in the order of the members; as a
/// binary tree over them.
void addParts(const Collective &collective, int64_t member, void *data,
              const void *scratch);

/// The collectives of one member of a group.
class Collectives {
public:
  /// `group` has the members, and nobody else; see GroupTransport. Two groups
  /// that share two members: both of these begin and finish what the two groups
  /// do in one order.
  explicit Collectives(Transport &group) : group(group) {}

  /// Posts what can be posted, and never blocks. `data` is this member's range,
  /// `scratch` has scratchBytes. Both, and the collective, must stay until it
  /// is finished.
  void begin(const Collective &collective, void *data, void *scratch);
  /// Finishes the oldest that was begun. Sums that are handed out go out here
  /// alone: to hide all of an all-reduce, give its two halves.
  void finish();

  void run(const Collective &collective, void *data, void *scratch) {
    begin(collective, data, scratch);
    finish();
  }

private:
  struct Begun {
    const Collective *collective;
    char *data;
    char *scratch;
  };

  /// Who gets something from whom, and who gives.
  template <class Receive, class Send>
  void exchange(const Collective &what, bool toOwners, const Receive &receive,
                const Send &send);
  void postToOwners(const Begun &begun);
  void postFromOwners(const Begun &begun, Lane lane);
  void wait(const Collective &what, bool toOwners, Lane lane);

  Transport &group;
  std::deque<Begun> begun;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H
