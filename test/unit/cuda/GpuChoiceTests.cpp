//===- GpuChoiceTests.cpp - Which GPU each rank takes ---------------------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/cuda/CudaPlatform.h"

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
            "too few GPUs: --transport nccl needs one for each of the 4 ranks "
            "on this host, but there are 2 GPUs; start fewer ranks here");
  CudaOptions options;
  options.links = LinkKind::Local;
  EXPECT_TRUE(
      contains(errorOf([&] { chooseGpus(2, 2, true, 2, options, never); }),
               "cuda-local expects all ranks in one process"));
}
