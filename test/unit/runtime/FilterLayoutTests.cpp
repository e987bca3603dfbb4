//===- FilterLayoutTests.cpp - Filters in memory and in files -------------===//

#include "runtime/core/Error.h"
#include "runtime/train/FilterLayout.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace pipewright::runtime;

static std::vector<float> floatsOf(const std::vector<char> &bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(FilterLayout, PutsChannelsLastAndBack) {
  // Each element is its index [o, c, kh, kw] as decimal digits.
  std::vector<float> file, memory;
  for (int o = 0; o < 2; ++o)
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          file.push_back(1000 * o + 100 * c + 10 * i + j);
  for (int o = 0; o < 2; ++o)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        for (int c = 0; c < 3; ++c)
          memory.push_back(1000 * o + 100 * c + 10 * i + j);
  const TensorInfo weight = {
      .name = "w", .shape = "2x3x2x4", .channelsLast = true};
  EXPECT_EQ(floatsOf(filterForMemory(weight, file.data())), memory);
  EXPECT_EQ(floatsOf(filterForFile(weight, memory.data())), file);
}

TEST(FilterLayout, RefusesOtherShapes) {
  const TensorInfo weight = {.name = "w", .shape = "2x3", .channelsLast = true};
  try {
    filterForMemory(weight, nullptr);
    FAIL() << "expected an error";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "weight 'w' of shape 2x3 has channels last, but "
                               "is no filter of 4 dimensions");
  }
}
