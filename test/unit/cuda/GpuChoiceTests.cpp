//===- GpuChoiceTests.cpp - Which GPU each rank takes ---------------------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/cuda/CudaPlatform.h"
#include "runtime/cuda/LinkChoice.h"

using namespace pipewright::runtime;

using Gpus = std::vector<int64_t>;

static bool always(const Gpus &) { return true; }
static bool never(const Gpus &) { return false; }

static GpuChoice chooseThreads(int64_t ranks, int64_t available,
                               const CudaOptions &options = {},
                               const CanBeLocal &canBeLocal = always) {
  return chooseGpus(ranks, ranks, /*processes=*/false, available, options,
                    canBeLocal);
}

TEST(GpuChoice, OneForEachRankIfThereAreEnough) {
  const GpuChoice choice = chooseThreads(4, 8);
  EXPECT_EQ(choice.links, LinkKind::Local);
  EXPECT_EQ(choice.gpus, (Gpus{0, 1, 2, 3}));
}

TEST(GpuChoice, ThreadsTakeNcclWhereTheyMust) {
  EXPECT_EQ(chooseThreads(4, 8, {}, never).links, LinkKind::Nccl);
  EXPECT_EQ(chooseThreads(1, 8, {}, never).links, LinkKind::Local);
  // It needs a GPU for each.
  EXPECT_EQ(chooseThreads(4, 2, {}, never).links, LinkKind::Local);
  CudaOptions options;
  options.links = LinkKind::Local;
  EXPECT_EQ(chooseThreads(4, 8, options, never).links, LinkKind::Local);
  options.links = LinkKind::Nccl;
  EXPECT_EQ(chooseThreads(4, 8, options).links, LinkKind::Nccl);
  // The GPUs that are taken are asked about.
  Gpus asked;
  options.links.reset();
  options.gpus = {7, 2, 5};
  chooseThreads(2, 8, options, [&](const Gpus &gpus) {
    asked = gpus;
    return true;
  });
  EXPECT_EQ(asked, (Gpus{7, 2}));
}

TEST(GpuChoice, NeighboursShareWhereThereAreFewer) {
  const GpuChoice choice = chooseThreads(4, 2);
  EXPECT_EQ(choice.links, LinkKind::Local);
  EXPECT_EQ(choice.gpus, (Gpus{0, 0, 1, 1}));
  EXPECT_EQ(chooseThreads(4, 1).gpus, (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(chooseThreads(3, 2).gpus, (Gpus{0, 0, 1}));
}

TEST(GpuChoice, OneRankNeedsNoLinks) {
  const GpuChoice choice = chooseThreads(1, 8);
  EXPECT_EQ(choice.links, LinkKind::Local);
  EXPECT_EQ(choice.gpus, (Gpus{0}));
}

TEST(GpuChoice, TakesWhatTheUserNames) {
  CudaOptions options;
  options.gpus = {5, 3};
  EXPECT_EQ(chooseThreads(2, 8, options).gpus, (Gpus{5, 3}));
  options.links = LinkKind::Local;
  EXPECT_EQ(chooseThreads(2, 8, options).links, LinkKind::Local);
  options.gpus = {0, 8};
  EXPECT_EQ(errorOf([&] { chooseThreads(2, 8, options); }),
            "--gpus names GPU 8, but the CUDA driver shows 8 GPUs, numbered "
            "from 0");
}

TEST(GpuChoice, ProcessesNeedOneEach) {
  EXPECT_EQ(chooseGpus(8, 4, true, 4, {}, never).gpus, (Gpus{0, 1, 2, 3}));
  // A launcher may show each process its own GPU only.
  EXPECT_EQ(chooseGpus(4, 4, true, 1, {}, never).gpus, (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(errorOf([] { chooseGpus(4, 4, true, 2, {}, never); }),
            "too few GPUs: processes need one for each of the 4 ranks on this "
            "host, but there are 2 GPUs; start fewer ranks here");
  CudaOptions options;
  options.links = LinkKind::Local;
  EXPECT_TRUE(
      contains(errorOf([&] { chooseGpus(2, 2, true, 2, options, never); }),
               "cuda-local expects all ranks in one process"));
}

TEST(GpuChoice, ProcessesCopyWhereTheyCan) {
  EXPECT_EQ(chooseGpus(8, 4, true, 4, {}, never).links, LinkKind::Ipc);
  EXPECT_EQ(chooseGpus(1, 1, true, 4, {}, never).links, LinkKind::Local);
  CudaOptions options;
  options.links = LinkKind::Nccl;
  EXPECT_EQ(chooseGpus(8, 4, true, 4, options, never).links, LinkKind::Nccl);
  options.links = LinkKind::Ipc;
  EXPECT_TRUE(contains(errorOf([&] { chooseThreads(2, 2, options); }),
                       "cuda-ipc expects a process for each rank"));
}

static Program inLine(int64_t ranks) {
  Program program;
  program.ranks.resize(ranks);
  for (int64_t rank = 0; rank + 1 < ranks; ++rank) {
    program.ranks[rank].sendsTo.push_back(rank + 1);
    program.ranks[rank + 1].sendsTo.push_back(rank);
  }
  return program;
}

TEST(LinkChoice, HostsAreLinkedByNccl) {
  const LinkChoice choice = planLinks(inLine(4), LinkKind::Ipc, {0, 0, 1, 1});
  using Links = std::vector<LinkChoice::Link>;
  EXPECT_EQ(choice.over(LinkKind::Ipc),
            (Links{{0, 1}, {1, 0}, {2, 3}, {3, 2}}));
  EXPECT_EQ(choice.over(LinkKind::Nccl), (Links{{1, 2}, {2, 1}}));
  EXPECT_FALSE(choice.uses(LinkKind::Local));
  EXPECT_EQ(linkLines(choice), "links over cuda-ipc: 0 -> 1, 1 -> 0, 2 -> 3, 3 "
                               "-> 2\nlinks over nccl: 1 -> 2, 2 -> 1");
  EXPECT_FALSE(
      planLinks(inLine(2), LinkKind::Ipc, {0, 0}).uses(LinkKind::Nccl));
  EXPECT_EQ(planLinks(inLine(2), LinkKind::Nccl, {0, 0}).over(LinkKind::Nccl),
            (Links{{0, 1}, {1, 0}}));
}

TEST(LinkChoice, GroupsOfProcessesAreNccls) {
  Program program = inLine(2);
  program.groups.push_back({});
  program.groups.back().ranks = {0, 1};
  const LinkChoice choice = planLinks(program, LinkKind::Ipc, {0, 0});
  EXPECT_EQ(choice.over(LinkKind::Nccl).size(), 0u);
  EXPECT_EQ(choice.groupsOver(LinkKind::Nccl).size(), 1u);
  EXPECT_TRUE(choice.uses(LinkKind::Nccl));
  // Alone a rank is no group.
  program.groups.back().ranks = {0};
  EXPECT_FALSE(planLinks(program, LinkKind::Ipc, {0, 0}).uses(LinkKind::Nccl));
}

TEST(LinkChoice, LongListsAreCutShort) {
  const std::string lines =
      linkLines(planLinks(inLine(8), LinkKind::Nccl, std::vector<int64_t>(8)));
  EXPECT_TRUE(contains(lines, " and 6 more")) << lines;
}

TEST(LinkKind, EachHasAName) {
  for (const LinkKindFacts &facts : allLinkKinds) {
    EXPECT_EQ(findLinkKind(facts.name), facts.kind);
    EXPECT_EQ(&factsOf(facts.kind), &facts);
  }
  EXPECT_EQ(findLinkKind("tcp"), std::nullopt);
  EXPECT_EQ(linkKindNames(), "cuda-local, cuda-ipc or nccl");
}
