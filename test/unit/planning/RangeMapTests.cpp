//===- RangeMapTests.cpp - Values of bytes --------------------------------===//
//
// Pieces begin and end where visits did, and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/RangeMap.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
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

TEST(RangeMap, WhatIsSetIsOnePiece) {
  RangeMap<int> map;
  map.set(0, 4, 1);
  map.set(8, 4, 2);
  map.set(2, 8, 3);
  EXPECT_EQ(read(map, 0, 16),
            Pieces({{0, 2, 1}, {2, 10, 3}, {10, 12, 2}, {12, 16, 0}}));
  map.set(5, 0, 4);
  EXPECT_EQ(read(map, 0, 10), Pieces({{0, 2, 1}, {2, 10, 3}}));
}

TEST(RangeMap, AgreesWithBytes) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int64_t> positions(0, 99), sizes(0, 30);
  RangeMap<int> map;
  std::array<int, 200> bytes = {};
  for (int value = 1; value < 2000; ++value) {
    int64_t begin = positions(random), size = sizes(random);
    map.set(begin, size, value);
    std::fill_n(bytes.begin() + begin, size, value);
    int64_t from = positions(random), count = sizes(random), at = from;
    for (auto [begin, end, held] : read(map, from, count)) {
      EXPECT_EQ(begin, at);
      for (; at < end; ++at)
        EXPECT_EQ(held, bytes[at]);
    }
    EXPECT_EQ(at, from + count);
  }
}

TEST(RangeMap, EmptyRangesHaveNoPieces) {
  RangeMap<int> map;
  EXPECT_EQ(read(map, 4, 0), Pieces());
  EXPECT_EQ(read(map, 0, 8), Pieces({{0, 8, 0}}));
}

} // namespace
