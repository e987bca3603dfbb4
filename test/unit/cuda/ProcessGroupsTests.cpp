//===- ProcessGroupsTests.cpp - Links and groups of processes -------------===//

#include "runtime/cuda/ProcessGroups.h"

#include <gtest/gtest.h>

using namespace pipewright::runtime;

using Lists = std::vector<std::vector<int64_t>>;
using Links = std::vector<std::pair<int64_t, int64_t>>;

/// Three ranks; 0 and 2 hold a tied weight, and all have replicas.
static Program threeRanks(int64_t replicas) {
  Program program;
  program.replicas = replicas;
  program.ranks.resize(3);
  program.ranks[0].sendsTo = {1};
  program.ranks[1].sendsTo = {0, 2};
  program.groups.push_back({.ranks = {2, 0}});
  if (replicas > 1)
    program.groups.push_back({.axis = Axis::Data});
  return program;
}

TEST(ProcessGroups, AreThoseOfTheProgramWithoutReplicas) {
  const Program program = threeRanks(1);
  EXPECT_EQ(linksOf(program), (Links{{0, 1}, {1, 0}, {1, 2}}));
  EXPECT_EQ(groupsOf(program), (Lists{{2, 0}}));
  for (int64_t process = 0; process < 3; ++process)
    EXPECT_EQ(groupNumber(program, 0, process), 0);
  EXPECT_TRUE(isInGroups(program, 0));
  EXPECT_FALSE(isInGroups(program, 1));
}

/// Process 2 p + d is rank p of replica d.
TEST(ProcessGroups, AreThoseOfEachReplicaAndOfEachRank) {
  const Program program = threeRanks(2);
  EXPECT_EQ(linksOf(program),
            (Links{{0, 2}, {2, 0}, {2, 4}, {1, 3}, {3, 1}, {3, 5}}));
  const Lists groups = groupsOf(program);
  EXPECT_EQ(groups, (Lists{{4, 0}, {5, 1}, {0, 1}, {2, 3}, {4, 5}}));
  for (int64_t process = 0; process < 6; ++process) {
    const std::vector<int64_t> &replicas =
        groups[groupNumber(program, 1, process)];
    EXPECT_EQ(replicas.front(), process / 2 * 2);
    EXPECT_EQ(groupNumber(program, 0, process), process % 2);
  }
  EXPECT_TRUE(isInGroups(program, 1));
}
