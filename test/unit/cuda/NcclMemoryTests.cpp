//===- NcclMemoryTests.cpp - What NCCL takes of a GPU ---------------------===//

#include "runtime/cuda/NcclMemory.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace pipewright::runtime;

/// NCCL's own buffers of a channel: 4 MiB, 512 KiB and 4800 KiB.
constexpr int64_t channel = 9633792;

TEST(NcclMemory, IsThatOfChannelsThatReceive) {
  EXPECT_EQ(ncclBuffersOf(1, {{0, 1}, {1, 0}, {1, 2}, {2, 1}}, {}, true),
            2 * 4 * channel);
  EXPECT_EQ(ncclBuffersOf(0, {{0, 1}, {1, 2}}, {}, true), 0);
  // A group of one has no communicator.
  EXPECT_EQ(ncclBuffersOf(0, {}, {{0, 1}, {1, 2}, {0}}, true), 8 * channel);
}

TEST(NcclMemory, AcrossHostsIsThatOfChannelsThatSend) {
  EXPECT_EQ(ncclBuffersOf(0, {{0, 1}}, {}, false), 4 * channel);
  EXPECT_EQ(ncclBuffersOf(0, {{0, 1}, {1, 0}}, {{0, 1}}, false),
            (2 * 4 + 2 * 8) * channel);
}

TEST(NcclMemory, IsAsTheUserSaysInNcclsWords) {
  setenv("NCCL_BUFFSIZE", "1048576", 1);
  const int64_t bytes = ncclBuffersOf(1, {{0, 1}}, {}, true);
  unsetenv("NCCL_BUFFSIZE");
  EXPECT_EQ(bytes, 4 * (channel - (3 << 20)));
}
