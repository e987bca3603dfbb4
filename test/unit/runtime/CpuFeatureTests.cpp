//===- CpuFeatureTests.cpp - What a CPU must have to run a program --------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/RequiredFeatures.h"

using namespace pipewright::runtime;

TEST(CpuFeatures, UnknownOnesAreNotGuessed) {
  EXPECT_FALSE(hasCpuFeature("avx512teapot").has_value());
  EXPECT_FALSE(hasCpuFeature("AVX2").has_value());
}

TEST(CpuFeatures, ListsWhatIsMissing) {
  EXPECT_EQ(missingCpuFeatures(""), "");
  EXPECT_EQ(missingCpuFeatures("first,second,"), "first, second");
  EXPECT_EQ(missingCpuFeatures("first"), "first");
}

TEST(CpuFeatures, TheseTestsRunHere) {
  EXPECT_EQ(missingCpuFeatures(runtimeKernelFeatures()), "");
  EXPECT_NO_THROW(checkKernelFeatures());
#if defined(__x86_64__)
  // No CPU on which oneDNN computes lacks it.
  EXPECT_EQ(hasCpuFeature("sse4.1"), true);
  EXPECT_EQ(missingCpuFeatures("sse4.1,first,sse3"), "first");
#endif
}
