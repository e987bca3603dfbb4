//===- MeshTests.cpp - How processes are numbered -------------------------===//

#include "runtime/core/Mesh.h"
#include "runtime/core/ProcessName.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace pipewright::runtime;

using Numbers = std::vector<int64_t>;

TEST(Mesh, ShardsAreNeighboursThenReplicasThenPositions) {
  constexpr Mesh mesh = {4, 2, 2};
  EXPECT_EQ(mesh.size(), 16);
  EXPECT_EQ(mesh.processAt({0, 0, 1}), 1);
  EXPECT_EQ(mesh.processAt({0, 1, 0}), 2);
  EXPECT_EQ(mesh.processAt({1, 0, 0}), 4);
  EXPECT_EQ(mesh.processAt({3, 1, 1}), 15);
  EXPECT_EQ(mesh.placeOf(13), (Place{3, 0, 1}));
}

TEST(Mesh, NumbersAndPlacesAreOneToOne) {
  for (const Mesh mesh :
       {Mesh{1, 1, 1}, Mesh{3, 1, 1}, Mesh{1, 5, 1}, Mesh{1, 1, 4},
        Mesh{3, 4, 2}, Mesh{2, 1, 3}, Mesh{3, 4, 2, ProcessMap::Pipelines},
        Mesh{5, 1, 1, ProcessMap::Pairs}, Mesh{6, 3, 2, ProcessMap::Pairs}})
    for (int64_t process = 0; process < mesh.size(); ++process) {
      const Place place = mesh.placeOf(process);
      EXPECT_EQ(mesh.processAt(place), process);
      EXPECT_LT(place.position, mesh.pipe);
      EXPECT_LT(place.replica, mesh.data);
      EXPECT_LT(place.shard, mesh.tensor);
    }
}

TEST(Mesh, PipelinesAreNeighboursThenReplicas) {
  constexpr Mesh mesh = {4, 2, 2, ProcessMap::Pipelines};
  EXPECT_EQ(mesh.processAt({0, 0, 1}), 1);
  EXPECT_EQ(mesh.processAt({1, 0, 0}), 2);
  EXPECT_EQ(mesh.processAt({0, 1, 0}), 8);
  EXPECT_EQ(mesh.placeOf(13), (Place{2, 1, 1}));
  EXPECT_EQ(mesh.groupOf(9, Axis::Pipe), (Numbers{9, 11, 13, 15}));
  EXPECT_EQ(mesh.groupOf(9, Axis::Data), (Numbers{1, 9}));
}

// "BPipe" (ICML 2023): which stages are on the first of two hosts of eight, and
// which on the second; there, whose figure goes through it backwards.
TEST(Mesh, PairsAreNeighbours) {
  const Mesh mesh = {16, 1, 1, ProcessMap::Pairs};
  Numbers positions;
  for (int64_t process = 0; process < 16; ++process)
    positions.push_back(mesh.placeOf(process).position);
  EXPECT_EQ(positions, (Numbers{0, 15, 1, 14, 2, 13, 3, 12, //
                                4, 11, 5, 10, 6, 9, 7, 8}));
  // Position 2 of five has no other.
  const Mesh odd = {5, 2, 1, ProcessMap::Pairs};
  EXPECT_EQ(odd.groupOf(0, Axis::Pipe), (Numbers{0, 2, 4, 3, 1}));
  EXPECT_EQ(odd.groupOf(7, Axis::Pipe), (Numbers{5, 7, 9, 8, 6}));
  EXPECT_EQ(odd.groupOf(7, Axis::Data), (Numbers{2, 7}));
}

TEST(Mesh, MapsHaveNames) {
  for (const ProcessMap map : allProcessMaps)
    EXPECT_EQ(processMapNamed(nameOf(map)), map);
  EXPECT_EQ(processMapNamed("pair"), std::nullopt);
  EXPECT_EQ(processMapNames(), "replicas, pipelines or pairs");
}

TEST(Mesh, APipelineAloneIsNumberedByPosition) {
  const Mesh mesh = {5, 1, 1};
  for (int64_t process = 0; process < 5; ++process) {
    EXPECT_EQ(mesh.placeOf(process), (Place{process, 0, 0}));
    EXPECT_EQ(mesh.groupOf(process, Axis::Pipe), (Numbers{0, 1, 2, 3, 4}));
    EXPECT_EQ(mesh.groupOf(process, Axis::Data), Numbers{process});
    EXPECT_EQ(mesh.groupOf(process, Axis::Tensor), Numbers{process});
  }
}

TEST(Mesh, MembersOfAGroupDifferInOneThing) {
  const Mesh mesh = {2, 3, 2};
  EXPECT_EQ(mesh.groupOf(9, Axis::Pipe), (Numbers{3, 9}));
  EXPECT_EQ(mesh.groupOf(9, Axis::Data), (Numbers{7, 9, 11}));
  EXPECT_EQ(mesh.groupOf(9, Axis::Tensor), (Numbers{8, 9}));
  EXPECT_EQ(
      mesh.groups(Axis::Pipe),
      (std::vector<Numbers>{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}}));
  EXPECT_EQ(
      mesh.groups(Axis::Data),
      (std::vector<Numbers>{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}));
}

TEST(Mesh, EachProcessIsInOneGroupOfEachAxis) {
  const Mesh mesh = {3, 4, 2};
  for (const Axis axis : allAxes) {
    std::multiset<int64_t> members;
    for (const Numbers &group : mesh.groups(axis)) {
      EXPECT_EQ(static_cast<int64_t>(group.size()), mesh.extent(axis));
      for (const int64_t process : group)
        EXPECT_EQ(mesh.groupOf(process, axis), group);
      members.insert(group.begin(), group.end());
    }
    Numbers all(mesh.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(Numbers(members.begin(), members.end()), all);
  }
}

TEST(Mesh, HoldersOfATiedWeightAreOfOneReplicaAndShard) {
  const Mesh mesh = {4, 2, 2};
  // Process 7 is replica 1, shard 1 of position 1.
  EXPECT_EQ(mesh.holders(7, {3, 0}), (Numbers{3, 15}));
  EXPECT_EQ(mesh.holders(7, {2}), Numbers{11});
}

TEST(ProcessName, SaysRankAndReplica) {
  EXPECT_EQ(processName(3), "rank 3");
  nameProcessesBy({.pipe = 2, .data = 3});
  EXPECT_EQ(processName(0), "rank 0 of replica 0");
  EXPECT_EQ(processName(5), "rank 1 of replica 2");
  nameProcessesBy({.pipe = 2, .data = 3, .map = ProcessMap::Pipelines});
  EXPECT_EQ(processName(5), "rank 1 of replica 2");
  EXPECT_EQ(processName(2), "rank 0 of replica 1");
  nameProcessesBy({.pipe = 4, .map = ProcessMap::Pairs});
  EXPECT_EQ(processName(1), "rank 3");
  nameProcessesBy({.pipe = 2});
  EXPECT_EQ(processName(1), "rank 1");
}
