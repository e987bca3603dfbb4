//===- GpuChoiceTests.cpp - Which GPU each rank takes ---------------------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/cuda/CudaPlatform.h"

using namespace pipewright::runtime;

using Gpus = std::vector<int64_t>;

static GpuChoice chooseThreads(int64_t ranks, int64_t available,
                               const CudaOptions &options = {}) {
  return chooseGpus(ranks, ranks, /*processes=*/false, available, options);
}

TEST(GpuChoice, OneForEachRankIfThereAreEnough) {
  const GpuChoice choice = chooseThreads(4, 8);
  EXPECT_EQ(choice.links, LinkKind::Nccl);
  EXPECT_EQ(choice.gpus, (Gpus{0, 1, 2, 3}));
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
  EXPECT_EQ(chooseGpus(8, 4, true, 4, {}).gpus, (Gpus{0, 1, 2, 3}));
  // A launcher may show each process its own GPU only.
  EXPECT_EQ(chooseGpus(4, 4, true, 1, {}).gpus, (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(errorOf([] { chooseGpus(4, 4, true, 2, {}); }),
            "too few GPUs: --transport nccl needs one for each of the 4 ranks "
            "on this host, but there are 2 GPUs; start fewer ranks here");
  CudaOptions options;
  options.links = LinkKind::Local;
  EXPECT_TRUE(contains(errorOf([&] { chooseGpus(2, 2, true, 2, options); }),
                       "cuda-local expects all ranks in one process"));
}
