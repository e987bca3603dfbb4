//===- RangeMapTests.cpp - Values of bytes --------------------------------===//
//
// Pieces begin and end where visits did, and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/RangeMap.h"

#include <gtest/gtest.h>
#include <tuple>
#include <vector>

using namespace pipewright;

namespace {

using Pieces = std::vector<std::tuple<int64_t, int64_t, int>>;

void set(RangeMap<int> &map, int64_t begin, int64_t bytes, int value) {
  map.visit(begin, bytes, [&](int64_t, int64_t, int &held) { held = value; });
}

Pieces read(RangeMap<int> &map, int64_t begin, int64_t bytes) {
  Pieces pieces;
  map.visit(begin, bytes, [&](int64_t from, int64_t to, int &held) {
    pieces.push_back({from, to, held});
  });
  return pieces;
}

TEST(RangeMap, BytesBeginWithTheDefault) {
  RangeMap<int> map;
  EXPECT_EQ(read(map, 0, 8), Pieces({{0, 8, 0}}));
}

TEST(RangeMap, AVisitReachesItsRangeAlone) {
  RangeMap<int> map;
  set(map, 4, 4, 1);
  EXPECT_EQ(read(map, 0, 12), Pieces({{0, 4, 0}, {4, 8, 1}, {8, 12, 0}}));
}

TEST(RangeMap, OverlapsAreSplitWhereVisitsBeganAndEnded) {
  RangeMap<int> map;
  set(map, 0, 8, 1);
  set(map, 4, 8, 2);
  EXPECT_EQ(read(map, 2, 8), Pieces({{2, 4, 1}, {4, 8, 2}, {8, 10, 2}}));
}

TEST(RangeMap, EmptyRangesHaveNoPieces) {
  RangeMap<int> map;
  EXPECT_EQ(read(map, 4, 0), Pieces());
  EXPECT_EQ(read(map, 0, 8), Pieces({{0, 8, 0}}));
}

} // namespace
