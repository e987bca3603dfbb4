//===- CollectiveKinds.h - The one list of collectives ----------*- C++ -*-===//
//
// What the members of a group may do together, each with the same range of
// numbers, in place. Of each number one member is the owner: the member in
// whose part it is, or, for kinds that are rooted, the root. What a collective
// does follows from two facts: whether it reduces (owners add up what all
// members have), and whether it replicates (all members get what owners have in
// the end). Whoever needs to know more of a kind than its row says has a list
// of kinds of its own; there is one, for names of another library
// (runtime/cuda/NcclGroups.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEKINDS_H
#define PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEKINDS_H

#include <cstdint>

// KIND(name in C++, call in generated code, name in text,
//      reduces, replicates, rooted)
// clang-format off
#define PIPEWRIGHT_COLLECTIVE_KINDS(KIND)                                      \
  KIND(AllReduce,     allReduce,     "all-reduce",     true,  true,  false)    \
  KIND(ReduceScatter, reduceScatter, "reduce-scatter", true,  false, false)    \
  KIND(AllGather,     allGather,     "all-gather",     false, true,  false)    \
  KIND(Broadcast,     broadcast,     "broadcast",      false, true,  true)     \
  KIND(Reduce,        reduce,        "reduce",         true,  false, true)
// clang-format on

namespace pipewright::runtime {

#define PIPEWRIGHT_COLLECTIVE_NAME(name, call, text, reduces, replicates,      \
                                   rooted)                                     \
  name,
enum class CollectiveKind : uint8_t {
  PIPEWRIGHT_COLLECTIVE_KINDS(PIPEWRIGHT_COLLECTIVE_NAME)
};
#undef PIPEWRIGHT_COLLECTIVE_NAME

struct CollectiveFacts {
  CollectiveKind kind;
  /// "allReduce"
  const char *call;
  /// "all-reduce"
  const char *text;
  /// Owners have the sum of what all members have; gradients are added.
  bool reduces;
  /// All members have, in the end, what the owners have.
  bool replicates;
  /// The root owns everything; otherwise each member owns its part.
  bool rooted;
};

#define PIPEWRIGHT_COLLECTIVE_ROW(name, call, text, reduces, replicates,       \
                                  rooted)                                      \
  {CollectiveKind::name, #call, text, reduces, replicates, rooted},
/// In the order of their numbers.
inline constexpr CollectiveFacts allCollectives[] = {
    PIPEWRIGHT_COLLECTIVE_KINDS(PIPEWRIGHT_COLLECTIVE_ROW)};
#undef PIPEWRIGHT_COLLECTIVE_ROW

constexpr const CollectiveFacts &factsOf(CollectiveKind kind) {
  return allCollectives[static_cast<uint8_t>(kind)];
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_COLLECTIVEKINDS_H
