//===- ProcessGroups.cpp - A program's links and groups of processes ------===//

#include "runtime/cuda/ProcessGroups.h"

#include <algorithm>

using namespace pipewright::runtime;

std::vector<std::pair<int64_t, int64_t>>
pipewright::runtime::linksOf(const Program &program) {
  const Mesh mesh = program.mesh();
  std::vector<std::pair<int64_t, int64_t>> links;
  for (int64_t replica = 0; replica < program.replicas; ++replica)
    for (size_t from = 0; from < program.ranks.size(); ++from)
      for (int64_t to : program.ranks[from].sendsTo)
        links.emplace_back(
            mesh.processAt({static_cast<int64_t>(from), replica}),
            mesh.processAt({to, replica}));
  return links;
}

/// How many groups of processes a program's group is.
static int64_t countOf(const Program &program, const GroupInfo &members) {
  return members.axis == Axis::Data ? static_cast<int64_t>(program.ranks.size())
                                    : program.replicas;
}

std::vector<std::vector<int64_t>>
pipewright::runtime::groupsOf(const Program &program) {
  const Mesh mesh = program.mesh();
  std::vector<std::vector<int64_t>> groups;
  for (const GroupInfo &members : program.groups)
    for (int64_t i = 0; i < countOf(program, members); ++i) {
      if (members.axis == Axis::Data) {
        groups.push_back(mesh.groupOf(mesh.processAt({i, 0}), Axis::Data));
        continue;
      }
      std::vector<int64_t> &group = groups.emplace_back();
      for (int64_t rank : members.ranks)
        group.push_back(mesh.processAt({rank, i}));
    }
  return groups;
}

int64_t pipewright::runtime::groupNumber(const Program &program, int64_t group,
                                         int64_t process) {
  const Place place = program.mesh().placeOf(process);
  int64_t number = 0;
  for (int64_t before = 0; before < group; ++before)
    number += countOf(program, program.groups.at(before));
  return number + (program.groups.at(group).axis == Axis::Data ? place.position
                                                               : place.replica);
}

bool pipewright::runtime::isInGroups(const Program &program, int64_t rank) {
  return std::any_of(program.groups.begin(), program.groups.end(),
                     [&](const GroupInfo &group) { return group.has(rank); });
}
