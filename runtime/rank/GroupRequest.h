//===- GroupRequest.h - What a program asks a group for --------*- C++ -*-===//
//
// Programs ask by a call for each kind of collective: `allReduce(group, type,
// range, scratch)`. Its name and what it takes follow from the table of kinds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_GROUPREQUEST_H
#define PIPEWRIGHT_RUNTIME_RANK_GROUPREQUEST_H

#include "runtime/calls/CollectiveKinds.h"
#include "runtime/core/Arena.h"
#include "runtime/core/ElementType.h"

#include <cstdint>

namespace pipewright::runtime {

struct GroupRequest {
  CollectiveKind kind;
  /// Its number in Program::groups.
  int64_t group;
  ElementType type;
  /// What each member has, at a place of its own.
  Buffer range;
  /// Where others' numbers go before they are added.
  Buffer scratch = {};
  /// A rank of the group, or the number of a replica.
  int64_t root = -1;
  /// Recorded when it is over, on a GPU.
  int64_t event = -1;
};

template <CollectiveKind kind>
constexpr bool addsToRoot = factsOf(kind).reduces && factsOf(kind).rooted;
template <CollectiveKind kind>
constexpr bool addsToParts = factsOf(kind).reduces && !factsOf(kind).rooted;
template <CollectiveKind kind>
constexpr bool copiesRoot = !factsOf(kind).reduces && factsOf(kind).rooted;
template <CollectiveKind kind>
constexpr bool copiesParts = !factsOf(kind).reduces && !factsOf(kind).rooted;

template <CollectiveKind kind>
  requires addsToRoot<kind>
GroupRequest requestOf(int64_t group, ElementType type, Buffer range,
                       Buffer scratch, int64_t root, int64_t event = -1) {
  return {kind, group, type, range, scratch, root, event};
}
template <CollectiveKind kind>
  requires addsToParts<kind>
GroupRequest requestOf(int64_t group, ElementType type, Buffer range,
                       Buffer scratch, int64_t event = -1) {
  return {kind, group, type, range, scratch, -1, event};
}
template <CollectiveKind kind>
  requires copiesRoot<kind>
GroupRequest requestOf(int64_t group, ElementType type, Buffer range,
                       int64_t root, int64_t event = -1) {
  return {kind, group, type, range, {}, root, event};
}
template <CollectiveKind kind>
  requires copiesParts<kind>
GroupRequest requestOf(int64_t group, ElementType type, Buffer range,
                       int64_t event = -1) {
  return {kind, group, type, range, {}, -1, event};
}

} // namespace pipewright::runtime

/// The call of one kind, in a class that has `postCollective(request)`.
#define PIPEWRIGHT_COLLECTIVE_CALL(name, call, text, reduces, replicates,      \
                                   rooted)                                     \
  template <class... Arguments>                                                \
  void call(Arguments... arguments) {                                          \
    postCollective(requestOf<CollectiveKind::name>(arguments...));             \
  }

#endif // PIPEWRIGHT_RUNTIME_RANK_GROUPREQUEST_H
