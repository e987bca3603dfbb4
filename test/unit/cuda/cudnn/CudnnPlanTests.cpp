//===- CudnnPlanTests.cpp - What the real cuDNN has engines for -----------===//
//
// Plans are made as a program makes them when it starts, but for GPUs that are
// described to the library.
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/cudnn/DescribedGpu.h"
#include "test/unit/runtime/AttentionLayer.h"

#include "runtime/cuda/kernels/CudnnAttention.h"

#include <gmock/gmock.h>

using namespace pipewright::runtime;
using ::testing::HasSubstr;

#if CUDNN_VERSION >= 90800

namespace {

constexpr int64_t gibibyte = int64_t{1} << 30;

class CudnnPlans : public DescribedGpuTest {
protected:
  /// Says what was found, for the record.
  static AttentionPlans plan(const Gpu &gpu, const AttentionShape &shape);
};

} // namespace

AttentionPlans CudnnPlans::plan(const Gpu &gpu, const AttentionShape &shape) {
  const CudnnDescriptor device = describe(gpu);
  CudnnTarget target;
  target.device = &device;
  AttentionPlans plans = planAttention(target, shape, gibibyte);
  std::printf("sm_%d, cuDNN %s, %s: ", static_cast<int>(gpu.architecture),
              cudnnVersionText().c_str(), attentionText(shape).c_str());
  if (plans)
    std::printf("engines %d and %d, workspace %lld and %lld bytes, parts %d\n",
                static_cast<int>(plans.forward.engine),
                static_cast<int>(plans.backward.engine),
                static_cast<long long>(plans.forward.workspaceBytes),
                static_cast<long long>(plans.backward.workspaceBytes),
                static_cast<int>(plans.parts));
  else
    std::printf("%s\n", plans.reason.c_str());
  return plans;
}

/// As GPT-2 has it, for a micro-batch.
static AttentionShape gpt2(int64_t batch) {
  return AttentionLayer{.vectors = {batch, 12, 1024, 64},
                        .scale = 0.125f,
                        .causal = true,
                        .type = ElementType::BF16};
}

/// Backward keeps the gradients of scores in bf16 and not much more: no sums of
/// dq in f32, which only atomics could add up.
static void expectScoresInWorkspace(const AttentionPlans &plans,
                                    const AttentionShape &s) {
  ASSERT_TRUE(plans) << plans.reason;
  const int64_t scores = 2 * s.batch * s.heads * s.rows * s.rows;
  EXPECT_GE(plans.backward.workspaceBytes, scores / plans.parts);
  EXPECT_LT(plans.backward.workspaceBytes, scores / plans.parts + 4096);
  EXPECT_LT(plans.forward.workspaceBytes, 4096);
}

/// q, k and v in rows of one tensor, or each in a tensor of its own.
static AttentionShape rowsFirst(AttentionShape shape, bool packed) {
  shape.outputStride = shape.heads * shape.depth;
  shape.inputStride = (packed ? 3 : 1) * shape.outputStride;
  return shape;
}

/// Packed operands go to the engines that dense ones go to.
TEST_F(CudnnPlans, AttentionOfGpt2) {
  for (const Gpu &gpu : {h100, a100}) {
    const AttentionPlans dense = plan(gpu, gpt2(16));
    const AttentionPlans packed = plan(gpu, rowsFirst(gpt2(16), true));
    for (const AttentionPlans *plans : {&dense, &packed}) {
      expectScoresInWorkspace(*plans, gpt2(16));
      EXPECT_EQ(plans->parts, 1);
    }
    EXPECT_EQ(packed.forward.engine, dense.forward.engine);
    EXPECT_EQ(packed.backward.engine, dense.backward.engine);
  }
}

TEST_F(CudnnPlans, LargeBatchesGoInParts) {
  const AttentionPlans plans = plan(h100, gpt2(64));
  expectScoresInWorkspace(plans, gpt2(64));
  EXPECT_EQ(plans.parts, 2);
}

/// Some heads of each sample at once: strides stay those of all.
TEST_F(CudnnPlans, PackedHeadsGoInParts) {
  AttentionShape shape = rowsFirst(gpt2(1), true);
  shape.rows = 8192;
  const AttentionPlans plans = plan(h100, shape);
  ASSERT_TRUE(plans) << plans.reason;
  EXPECT_EQ(plans.parts, 2);
}

TEST_F(CudnnPlans, AttentionOfSmallModels) {
  EXPECT_TRUE(plan(h100, AttentionLayer{.vectors = {2, 4, 37, 16},
                                        .causal = true,
                                        .type = ElementType::BF16}));
  EXPECT_TRUE(plan(a100, AttentionLayer{.vectors = {2, 2, 32, 8},
                                        .type = ElementType::BF16}));
}

TEST_F(CudnnPlans, NoMasks) {
  EXPECT_EQ(plan(h100, AttentionLayer{.vectors = {8, 12, 128, 64},
                                      .mask = {8, 1, 1, 128},
                                      .type = ElementType::BF16})
                .reason,
            "cuDNN's gradients are wrong where there is a mask");
}

TEST_F(CudnnPlans, SayWhatNoEngineKnows) {
  AttentionShape shape = gpt2(1);
  shape.depth = 60;
  EXPECT_THAT(plan(h100, shape).reason, HasSubstr("no engine knows it"));
  // One head wants 2 GiB.
  shape = gpt2(1);
  shape.rows = 32768;
  EXPECT_THAT(plan(a100, shape).reason, HasSubstr("cannot be parted"));
}

#else

TEST(CudnnPlans, NeedHeadersOfCudnn) {
  GTEST_SKIP() << "headers older than cuDNN 9.8 describe no GPUs";
}

#endif
