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
// Ranks that are threads read each other's numbers where they lie
// (SharedCollectives.h), those that are processes exchange them directly, by
// posts and waits (MessageCollectives.h); GPUs have what DeviceLinks has.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H
#define PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H

#include "runtime/calls/CollectiveKinds.h"
#include "runtime/calls/CollectiveParts.h"
#include "runtime/core/ElementType.h"
#include "runtime/core/Traffic.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

class Transport;

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

/// Throws the Error of a member that finishes more than it has begun.
[[noreturn]] void failNotBegun(const Transport &group);

/// Adds so many numbers of each member, of type F32 or BF16, to where `sums`
/// is, which may be one of the members' places; as a binary tree over them.
void addNumbers(ElementType type, const std::vector<const void *> &members,
                int64_t count, void *sums);

/// The collectives of one member of a group.
class Collectives {
public:
  /// `group` has the members, and nobody else (see GroupTransport), and
  /// outlives this. Members open the groups that they share in one order. Two
  /// groups that share two members: both of these begin and finish what the two
  /// groups do in one order.
  static std::unique_ptr<Collectives> open(Transport &group);
  virtual ~Collectives() = default;
  Collectives(const Collectives &) = delete;
  Collectives &operator=(const Collectives &) = delete;

  /// Posts what can be posted, and never blocks. `data` is this member's range,
  /// `scratch` has scratchBytes. Both, and the collective, must stay until it
  /// is finished; others may read and write the range until then.
  virtual void begin(const Collective &collective, void *data,
                     void *scratch) = 0;
  /// Finishes the oldest that was begun. If it gives up because a deadline has
  /// passed, it may be called again.
  virtual void finish() = 0;
  /// What this member has given to others since the last call, unless the
  /// group's transport has counted it.
  virtual Traffic takeSent() { return {}; }

  void run(const Collective &collective, void *data, void *scratch) {
    begin(collective, data, scratch);
    finish();
  }

protected:
  Collectives() = default;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_COLLECTIVES_H
