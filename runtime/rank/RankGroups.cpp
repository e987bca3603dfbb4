//===- RankGroups.cpp - The collectives of one rank -----------------------===//

#include "runtime/rank/RankGroups.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"

#include <algorithm>

using namespace pipewright::runtime;

Collective pipewright::runtime::collectiveOf(const Program &program,
                                             const GroupRequest &request) {
  const auto &[kind, group, type, range, scratch, root, event] = request;
  const GroupInfo &members = program.groups.at(group);
  const bool isOfReplicas = members.axis == Axis::Data;
  const CollectiveFacts &facts = factsOf(kind);
  if (facts.rooted && !members.has(root))
    fail("rank ", root, " is the root of the ", facts.text, " of group ", group,
         ", but no member of it");
  return {
      kind, type,
      evenBounds(range.bytes / byteWidth(type), members.size(program.replicas)),
      !facts.rooted ? 0
      : isOfReplicas
          ? root
          : std::find(members.ranks.begin(), members.ranks.end(), root) -
                members.ranks.begin()};
}

RankGroups::RankGroups(const Program &program, Transport &processes)
    : ranks(processes, program.mesh().groupOf(processes.rank(), Axis::Pipe)) {
  for (const GroupInfo &members : program.groups)
    if (members.axis == Axis::Data)
      groups.push_back(std::make_unique<Group>(
          processes, program.mesh().groupOf(processes.rank(), Axis::Data),
          /*isOfRanks=*/false));
    else
      groups.push_back(members.has(ranks.rank())
                           ? std::make_unique<Group>(ranks, members.ranks,
                                                     /*isOfRanks=*/true)
                           : nullptr);
}

void RankGroups::begin(int64_t number, Collective what, void *data,
                       Buffer scratch, void *scratchData) {
  Group *group = groups.at(number).get();
  if (!group)
    fail(processName(ranks.nameOf(ranks.rank())), " is no member of group ",
         number);
  const int64_t needed = scratchBytes(what, group->transport.rank());
  if (scratch.bytes < needed)
    fail("the ", what.text(), " needs ", needed,
         " bytes of scratch memory, but "
         "the program gives it ",
         scratch.bytes);
  const Begun &now =
      begun.emplace_back(Begun{number, std::move(what), Clock::now()});
  group->collectives->begin(now.what, data, scratchData);
}

const RankGroups::Begun &RankGroups::oldest() const {
  if (begun.empty())
    fail(processName(ranks.nameOf(ranks.rank())),
         " waits for a collective that it has not begun");
  return begun.front();
}

void RankGroups::finishOldest() {
  groups[oldest().group]->collectives->finish();
  begun.pop_front();
}

Traffic RankGroups::takeSent() {
  Traffic sent = ranks.takeSent();
  // Groups of ranks send through `ranks`.
  for (const std::unique_ptr<Group> &group : groups) {
    if (!group)
      continue;
    sent += group->collectives->takeSent();
    if (!group->isOfRanks)
      sent += group->transport.takeSent();
  }
  return sent;
}
