//===- FindingsTests.cpp --------------------------------------------------===//

#include "runtime/train/Findings.h"

#include <gtest/gtest.h>

using namespace pipewright::runtime;
using Kind = StepDigest::Kind;
using Processes = std::vector<int64_t>;

namespace {

Finding same() { return {}; }

Finding gave(Kind kind, int64_t place, int64_t number,
             std::map<int64_t, int64_t> sends = {}) {
  return {true, kind, place, number, std::move(sends), ""};
}

Finding received(int64_t from, int64_t number,
                 std::map<int64_t, int64_t> sends = {}) {
  return {true, Kind::Receive, from, number, std::move(sends), ""};
}

const Mesh three = {.pipe = 3};

} // namespace

TEST(Findings, NothingBeganWhereNothingDiffers) {
  EXPECT_EQ(originsAmong({same(), same(), same()}, three), Processes());
}

TEST(Findings, ARankThatPassesADifferenceOnIsNotItsOrigin) {
  EXPECT_EQ(originsAmong({gave(Kind::Send, 1, 4, {{1, 4}}),
                          received(0, 4, {{2, 4}}), received(1, 4)},
                         three),
            Processes({0}));
}

TEST(Findings, ADifferenceGoesRoundAndComesBack) {
  // Rank 1 computes a gradient wrong, rank 0 sends what follows from it back.
  EXPECT_EQ(
      originsAmong({received(1, 2, {{1, 5}}),
                    gave(Kind::Send, 0, 2, {{0, 2}, {2, 6}}), received(1, 6)},
                   three),
      Processes({1}));
}

TEST(Findings, WhatArrivesOtherwiseThanItWasSentBeganAtTheReceiver) {
  EXPECT_EQ(
      originsAmong({same(), received(0, 3, {{2, 3}}), received(1, 3)}, three),
      Processes({1}));
  // An earlier message differs on its way, a later one already where it is
  // sent.
  EXPECT_EQ(
      originsAmong({gave(Kind::Send, 1, 7, {{1, 7}}), received(0, 3), same()},
                   three),
      Processes({0, 1}));
}

TEST(Findings, ASumThatDiffersFollowsFromWhatWasAdded) {
  const Mesh replicas = {.pipe = 1, .data = 2};
  EXPECT_EQ(
      originsAmong({gave(Kind::Addend, 0, 0), gave(Kind::Sum, 0, 0)}, replicas),
      Processes({0}));
  EXPECT_EQ(originsAmong({same(), gave(Kind::Sum, 0, 0)}, replicas),
            Processes({1}));
}

TEST(Findings, MessagesAreThoseOfOneReplica) {
  const Mesh mesh = {.pipe = 2, .data = 2};
  // Processes: stage 0 of both replicas, then stage 1 of both.
  EXPECT_EQ(originsAmong({same(), gave(Kind::Send, 1, 0, {{1, 0}}), same(),
                          received(0, 0)},
                         mesh),
            Processes({1}));
}
