//===- ReverseTests.cpp - Rows in reverse order on GPUs -------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"

using namespace pipewright::runtime;

TEST(DeviceReverse, AnyNumberOfRows) {
  for (const auto type : {ElementType::F32, ElementType::BF16})
    for (const int64_t rows : {1, 2, 7}) {
      const ReverseShape s = {.rows = rows, .width = 5, .type = type};
      TwoRanks test;
      const Buffer x = test.numbers(rows * 5, type);
      const Buffer y = test.numbers(rows * 5, type);
      test.run([&](auto &rank) { reverseRows(rank, s, x, y); });
      EXPECT_TRUE(test.same(y)) << rows;
    }
}
