//===- PreflightReportTests.cpp - What preflight says of its numbers ------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/io/JsonFile.h"
#include "runtime/train/PreflightReport.h"

using namespace pipewright::runtime;

namespace {

constexpr double tolerance = 0.1;

enum Number { Matmul, Convolution, Attention, Bandwidth, Random, Call };

/// Ranks that are all alike, on one host, without links.
PreflightResult alike(int64_t pipe, int64_t data = 1) {
  PreflightResult result;
  result.mesh = {.pipe = pipe, .data = data};
  result.probes = {{"matmul_flops", "f32"},
                   {"convolution_flops", "f32"},
                   {"attention_flops", "f32"},
                   {"bandwidth", ""},
                   {"seconds_per_random", "", 1, false},
                   {"seconds_per_call", "", 1, false}};
  const std::vector<Measurement> figures = {{80e9, 0.01}, {60e9, 0.02},
                                            {30e9, 0.03}, {20e9, 0.04},
                                            {2e-9, 0.05}, {1e-8, 0.06}};
  for (int64_t process = 0; process < result.mesh.size(); ++process)
    result.ranks.push_back({"a", 8e9, figures});
  return result;
}

/// The links of a ring, all alike.
void addRing(PreflightResult &result) {
  const int64_t ranks = static_cast<int64_t>(result.ranks.size());
  for (int64_t from = 0; from < ranks; ++from) {
    const int64_t to = (from + 1) % ranks;
    for (const auto &[a, b] : {std::pair(from, to), std::pair(to, from)})
      result.links.push_back({.from = a,
                              .to = b,
                              .latency = 1e-6,
                              .alone = {4e9, 5e9, 6e9},
                              .bothWays = 4e9,
                              .together = 3e9,
                              .contention = 5.0 / 3});
  }
}

/// A line for each.
std::string failuresOf(const PreflightResult &result,
                       double share = tolerance) {
  std::string all;
  for (const std::string &line : findFailures(result, share))
    all += line + "\n";
  return all;
}

nlohmann::json fileOf(const PreflightResult &result) {
  return parseJson(machineText(result, tolerance));
}

} // namespace

TEST(PreflightReport, SummarizesByTheMiddle) {
  EXPECT_EQ(summarize({7}).median, 7);
  EXPECT_EQ(summarize({7}).spread, 0);
  EXPECT_EQ(summarize({3, 1, 100, 2}).median, 2.5);
  EXPECT_EQ(summarize({5, 1, 2, 3, 4}).spread, 2.0 / 3);
}

TEST(PreflightReport, OneRankIsItsOwnMedian) {
  const PreflightResult result = alike(1);
  EXPECT_EQ(failuresOf(result), "");
  EXPECT_EQ(notMeasured(result), "link_latency, link_bandwidth, "
                                 "network_latency, network_bandwidth");
  EXPECT_EQ(tableText(result),
            "rank  host  precision  matmul GFLOP/s  convolution GFLOP/s  "
            "attention GFLOP/s  bandwidth GB/s   random ns      call ns  free "
            "GB\n"
            "0     a     f32           80.00 (1 %)          60.00 (2 %)        "
            "30.00 (3 %)     20.00 (4 %)  2.00 (5 %)  10.00 (6 %)      8.0\n");
  const nlohmann::json file = fileOf(result);
  EXPECT_FALSE(file.contains("ranks"));
  const nlohmann::json &figures = file["figures"]["f32"];
  EXPECT_EQ(figures.size(), 11u);
  EXPECT_EQ(figures["matmul_flops"], 80e9);
  EXPECT_EQ(figures["seconds_per_call"], 1e-8);
  EXPECT_EQ(figures["host_ranks"], 1 << 20);
  EXPECT_EQ(figures["link_bandwidth"], 8e9);
  EXPECT_EQ(figures["network_bandwidth"], 1.25e9);
  EXPECT_FALSE(figures.contains("memory"));
}

TEST(PreflightReport, AllAlikePass) {
  PreflightResult result = alike(4);
  addRing(result);
  EXPECT_EQ(failuresOf(result), "");
  EXPECT_EQ(notMeasured(result), "network_latency, network_bandwidth");
  const nlohmann::json file = fileOf(result);
  EXPECT_FALSE(file.contains("ranks"));
  // What a training run sees.
  EXPECT_EQ(file["figures"]["f32"]["link_bandwidth"], 3e9);
  EXPECT_EQ(file["figures"]["f32"]["link_latency"], 1e-6);
  EXPECT_TRUE(contains(tableText(result),
                       "3 -> 0  in a host        1.00        4.00         "
                       "5.00         6.00            4.00              3.00  "
                       "      1.67\n"));
}

TEST(PreflightReport, NamesASlowRank) {
  PreflightResult result = alike(4);
  result.ranks[2].figures[Matmul].median = 40e9;
  result.ranks[1].figures[Random].median = 4e-9;
  // Within the tolerance, and so is this.
  result.ranks[0].figures[Bandwidth].median = 18.1e9;
  EXPECT_EQ(failuresOf(result),
            "rank 1 on a: random: 4.00 ns, 0.50 times as fast as the median of "
            "all ranks, 2.00 ns\n"
            "rank 2 on a: matmul in f32: 40.00 GFLOP/s, 0.50 times as fast as "
            "the median of all ranks, 80.00 GFLOP/s\n");
  EXPECT_EQ(failuresOf(result, 0.6), "");
  const nlohmann::json ranks = fileOf(result)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].dump(),
            R"({"figures":{"f32":{"seconds_per_random":4e-09}},)"
            R"("first":1,"last":1})");
  EXPECT_EQ(ranks[1].dump(),
            R"({"figures":{"f32":{"matmul_flops":40000000000.0}},)"
            R"("first":2,"last":2})");
}

TEST(PreflightReport, AFastRankPassesAndIsInTheFile) {
  PreflightResult result = alike(3);
  result.ranks[1].figures[Attention].median = 45e9;
  EXPECT_EQ(failuresOf(result), "");
  const nlohmann::json ranks = fileOf(result)["ranks"];
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0]["figures"]["f32"]["attention_flops"], 45e9);
}

TEST(PreflightReport, WhatTakesNoTimeMayTakeNearlyTwiceAsLong) {
  PreflightResult result = alike(3);
  addRing(result);
  result.ranks[1].figures[Call].median = 1.9e-8;
  result.links[0].latency = 1.9e-6;
  EXPECT_EQ(failuresOf(result), "");
  result.ranks[1].figures[Call].median = 2.1e-8;
  result.links[0].latency = 2.1e-6;
  EXPECT_EQ(failuresOf(result),
            "rank 1 on a: call: 21.00 ns, 0.48 times as fast as the median of "
            "all ranks, 10.00 ns\n"
            "link 0 -> 1 in a host: latency: 2.10 us, 0.48 times as fast as "
            "the median of links in a host, 1.00 us\n");
}

// A machine's places are processes, whatever ranks these are.
TEST(PreflightReport, PlacesAreProcesses) {
  for (const ProcessMap map : allProcessMaps) {
    PreflightResult result = alike(3, 2);
    result.mesh.map = map;
    result.ranks[1].figures[Matmul].median = 40e9;
    const nlohmann::json ranks = fileOf(result)["ranks"];
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0]["first"], 1);
    EXPECT_EQ(ranks[0]["last"], 1);
  }
}

// A rank that differs in one precision has a figure in all: readers of files
// expect that.
TEST(PreflightReport, PrecisionsHaveFiguresOfTheirOwn) {
  PreflightResult result = alike(3);
  for (const char *figure :
       {"matmul_flops", "convolution_flops", "attention_flops"})
    result.probes.push_back({figure, "bf16"});
  for (MeasuredRank &rank : result.ranks)
    for (int i = 0; i < 3; ++i)
      rank.figures.push_back({100e9, 0});
  result.ranks[0].figures[Matmul].median = 40e9;
  const nlohmann::json file = fileOf(result);
  EXPECT_EQ(file["figures"]["bf16"].size(), 11u);
  EXPECT_EQ(file["figures"]["bf16"]["matmul_flops"], 100e9);
  EXPECT_EQ(file["figures"]["bf16"]["bandwidth"], 20e9);
  EXPECT_EQ(file["ranks"][0]["figures"].dump(),
            R"({"bf16":{"bandwidth":20000000000.0},)"
            R"("f32":{"matmul_flops":40000000000.0}})");
  EXPECT_EQ(failuresOf(result),
            "rank 0 on a: matmul in f32: 40.00 GFLOP/s, 0.50 times as fast as "
            "the median of all ranks, 80.00 GFLOP/s\n");
}

TEST(PreflightReport, LinksOfAKindAreComparedWithEachOther) {
  PreflightResult result = alike(4);
  addRing(result);
  result.ranks[2].host = result.ranks[3].host = "b";
  // 1 - 2 and 3 - 0 are between hosts.
  for (const int64_t link : {2, 3, 6, 7}) {
    result.links[link].latency = 3e-5;
    result.links[link].alone = {1e9, 1e9, 0};
    result.links[link].bothWays = result.links[link].together = 1e9;
  }
  EXPECT_EQ(failuresOf(result), "");
  EXPECT_EQ(notMeasured(result), "");
  const nlohmann::json figures = fileOf(result)["figures"]["f32"];
  EXPECT_EQ(figures["host_ranks"], 2);
  EXPECT_EQ(figures["link_bandwidth"], 3e9);
  EXPECT_EQ(figures["network_bandwidth"], 1e9);
  EXPECT_EQ(figures["network_latency"], 3e-5);
  EXPECT_TRUE(contains(tableText(result), "between hosts       30.00        "
                                          "1.00         1.00            -"));

  result.links[3].together = 0.5e9;
  result.links[0].alone[2] = 3e9;
  // Short messages are shown alone.
  result.links[1].alone[0] = 1e9;
  EXPECT_EQ(failuresOf(result),
            "link 0 -> 1 in a host: one way: 3.00 GB/s, 0.50 times as fast as "
            "the median of links in a host, 6.00 GB/s\n"
            "link 2 -> 1 between hosts: all at once: 0.50 GB/s, 0.50 times as "
            "fast as the median of links between hosts, 1.00 GB/s\n");
  EXPECT_FALSE(contains(tableText(result), "one way"));
}

// While all send at once, links of pipelines share with more than links of
// replicas; the file has the former.
TEST(PreflightReport, LinksOfReplicasAreAKind) {
  PreflightResult result = alike(2, 2);
  addRing(result);
  for (size_t link = 0; link < result.links.size(); ++link)
    if ((result.links[link].isOfReplicas = link >= 4))
      result.links[link].together = 9e9;
  EXPECT_EQ(failuresOf(result), "");
  EXPECT_EQ(fileOf(result)["figures"]["f32"]["link_bandwidth"], 3e9);
  result.links[5].together = 3e9;
  EXPECT_EQ(failuresOf(result),
            "link 3 -> 2 in a host: all at once: 3.00 GB/s, 0.33 times as fast "
            "as the median of links of replicas in a host, 9.00 GB/s\n");
  for (MeasuredLink &link : result.links) {
    link.isOfReplicas = true;
    link.together = 7e9;
  }
  EXPECT_EQ(fileOf(result)["figures"]["f32"]["link_bandwidth"], 7e9);
}

TEST(PreflightReport, NamesUnsteadyRanks) {
  PreflightResult result = alike(3);
  EXPECT_EQ(unsteadyRanks(result), "");
  for (MeasuredRank &rank : result.ranks)
    rank.figures[Matmul].spread = 2;
  EXPECT_EQ(unsteadyRanks(result), "");
  for (const int64_t rank : {0, 2})
    for (Measurement &figure : result.ranks[rank].figures)
      figure.spread = 0.3;
  EXPECT_EQ(unsteadyRanks(result), "0, 2");
}

TEST(PreflightReport, NamesOfHostsCannotWriteToTerminals) {
  PreflightResult result = alike(2);
  result.ranks[0].host = "a\x1b[2J";
  result.ranks[0].figures[Matmul].median = 10e9;
  EXPECT_FALSE(contains(tableText(result), "\x1b"));
  EXPECT_TRUE(contains(failuresOf(result), "rank 0 on a\\x1b[2J: "));
}
