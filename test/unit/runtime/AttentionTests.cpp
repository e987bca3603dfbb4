//===- AttentionTests.cpp - Attention against its definition --------------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/kernels/RandomFactors.h"

#include <cstring>

using namespace pipewright::runtime;

namespace {

/// The buffers of one attention.
struct Case {
  explicit Case(AttentionShape shape, bool masked = false)
      : s(shape), columns(s.columns ? s.columns : s.rows),
        heads(s.batch * s.heads), test(),
        q(test.randomFloats(heads * s.rows * s.depth)),
        k(test.randomFloats(heads * columns * s.depth)),
        v(test.randomFloats(heads * columns * s.depth)),
        dO(test.randomFloats(heads * s.rows * s.depth)),
        o(test.floats(heads * s.rows * s.depth)),
        lse(test.floats(heads * s.rows)) {
    if (masked)
      mask = test.randomFloats(s.maskBatch * s.maskHeads * s.maskRows *
                               s.maskColumns);
  }

  AttentionShape s;
  int64_t columns, heads;
  OneRank test;
  Buffer q, k, v, dO, o, lse;
  Buffer mask = {};

  void forward() {
    prepareAttention(test.rank, s);
    attention(test.rank, s, 1, q, k, v, mask, o, lse);
  }

  /// The definition, in double; also the sum of dO * o.
  std::vector<float> naive(double *loss = nullptr,
                           std::vector<float> *sums = nullptr) {
    std::vector<float> out;
    double total = 0;
    std::vector<float> factors(columns);
    for (int64_t n = 0; n < heads; ++n)
      for (int64_t r = 0; r < s.rows; ++r) {
        const int64_t seen = s.causal ? std::min(columns, r + 1) : columns;
        std::vector<double> p(seen);
        double sum = 0;
        for (int64_t c = 0; c < seen; ++c) {
          double score = 0;
          for (int64_t d = 0; d < s.depth; ++d)
            score += static_cast<double>(
                         test.at(q)[(n * s.rows + r) * s.depth + d]) *
                     test.at(k)[(n * columns + c) * s.depth + d];
          score *= s.scale;
          if (mask) {
            const int64_t b = s.maskBatch == 1 ? 0 : n / s.heads;
            const int64_t h = s.maskHeads == 1 ? 0 : n % s.heads;
            const int64_t i = s.maskRows == 1 ? 0 : r;
            const int64_t j = s.maskColumns == 1 ? 0 : c;
            score += test.at(
                mask)[((b * s.maskHeads + h) * s.maskRows + i) * s.maskColumns +
                      j];
          }
          p[c] = std::exp(score);
          sum += p[c];
        }
        if (sums)
          sums->push_back(static_cast<float>(std::log(sum)));
        const RandomStream stream = {42, static_cast<uint32_t>(s.dropoutId), 1,
                                     3};
        randomFactors(stream, s.dropoutRate, (n * s.rows + r) * columns,
                      columns, factors.data());
        for (int64_t d = 0; d < s.depth; ++d) {
          double value = 0;
          for (int64_t c = 0; c < seen; ++c)
            value += p[c] / sum * (s.dropoutRate > 0 ? factors[c] : 1) *
                     test.at(v)[(n * columns + c) * s.depth + d];
          total += value * test.at(dO)[out.size()];
          out.push_back(static_cast<float>(value));
        }
      }
    if (loss)
      *loss = total;
    return out;
  }
};

} // namespace

static void checkForward(AttentionShape s, bool masked = false) {
  Case c(s, masked);
  std::vector<float> sums;
  const auto expected = c.naive(nullptr, &sums);
  c.forward();
  EXPECT_TRUE(agree(c.test.read(c.o), expected, 1e-5));
  EXPECT_TRUE(agree(c.test.read(c.lse), sums, 1e-5));
}

TEST(Attention, OddSizes) {
  checkForward(
      {.batch = 2, .heads = 3, .rows = 37, .depth = 11, .scale = 0.3f});
}

TEST(Attention, CausalOverSeveralBlocks) {
  checkForward({.batch = 1,
                .heads = 2,
                .rows = 200,
                .depth = 16,
                .scale = 0.25f,
                .causal = true});
}

TEST(Attention, MoreKeysThanRows) {
  checkForward(
      {.batch = 1, .heads = 2, .rows = 70, .columns = 129, .depth = 8});
}

TEST(Attention, MaskOfAnyStretch) {
  checkForward({.batch = 2,
                .heads = 2,
                .rows = 20,
                .depth = 8,
                .maskBatch = 2,
                .maskColumns = 20},
               true);
  checkForward({.batch = 2,
                .heads = 2,
                .rows = 20,
                .depth = 8,
                .maskHeads = 2,
                .maskRows = 20,
                .maskColumns = 20},
               true);
  checkForward({.batch = 2,
                .heads = 2,
                .rows = 20,
                .depth = 8,
                .causal = true,
                .maskRows = 20},
               true);
}

TEST(Attention, Dropout) {
  checkForward({.batch = 1,
                .heads = 2,
                .rows = 70,
                .depth = 8,
                .causal = true,
                .dropoutRate = 0.3f,
                .dropoutId = 4});
}

/// Every gradient against central differences of the definition, in some
/// places of each operand.
static void checkBackward(AttentionShape s, bool masked = false) {
  Case c(s, masked);
  c.forward();
  const Buffer operands[3] = {c.q, c.k, c.v};
  Buffer gradients[3];
  for (int i = 0; i < 3; ++i)
    gradients[i] = c.test.floats(operands[i].bytes / 4);
  attentionBackward(c.test.rank, s, 1, c.dO, c.q, c.k, c.v, c.o, c.lse, c.mask,
                    gradients[0], gradients[1], gradients[2]);
  for (int i = 0; i < 3; ++i) {
    std::vector<float> got, expected;
    const int64_t count = operands[i].bytes / 4;
    for (int64_t at = 0; at < count; at += count / 13 + 1) {
      float &value = c.test.at(operands[i])[at];
      const float old = value;
      const float step = 1e-2f;
      double above, below;
      value = old + step;
      const double high = value;
      c.naive(&above);
      value = old - step;
      const double low = value;
      c.naive(&below);
      value = old;
      got.push_back(c.test.at(gradients[i])[at]);
      expected.push_back(static_cast<float>((above - below) / (high - low)));
    }
    EXPECT_TRUE(agree(got, expected, 2e-4)) << "operand " << i;
  }
}

TEST(AttentionBackward, OddSizes) {
  checkBackward(
      {.batch = 2, .heads = 2, .rows = 19, .depth = 5, .scale = 0.4f});
}

TEST(AttentionBackward, CausalOverSeveralBlocks) {
  checkBackward({.batch = 1,
                 .heads = 1,
                 .rows = 150,
                 .depth = 8,
                 .scale = 0.3f,
                 .causal = true});
}

TEST(AttentionBackward, FewerKeysAndMask) {
  checkBackward({.batch = 2,
                 .heads = 1,
                 .rows = 30,
                 .columns = 18,
                 .depth = 8,
                 .maskBatch = 2,
                 .maskColumns = 18},
                true);
}

TEST(AttentionBackward, Dropout) {
  checkBackward({.batch = 1,
                 .heads = 2,
                 .rows = 33,
                 .depth = 8,
                 .causal = true,
                 .dropoutRate = 0.25f,
                 .dropoutId = 7});
}

TEST(AttentionBackward, ThreadsDoNotChangeBits) {
  const AttentionShape s = {
      .batch = 2, .heads = 3, .rows = 70, .depth = 8, .causal = true};
  Case c(s);
  c.forward();
  const auto alone = c.test.read(c.o);
  c.test.rank.setThreads(3);
  c.forward();
  EXPECT_EQ(alone, c.test.read(c.o));
}
