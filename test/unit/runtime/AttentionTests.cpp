//===- AttentionTests.cpp - Attention against its definition --------------===//

#include "test/unit/runtime/AttentionLayer.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/cpu/RandomFactors.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace pipewright::runtime;

namespace {

/// The buffers of one attention.
struct Case {
  explicit Case(const AttentionLayer &layer)
      : s(layer), columns(s.columns ? s.columns : s.rows),
        heads(s.batch * s.heads), test(),
        q(test.randomFloats(heads * s.rows * s.depth)),
        k(test.randomFloats(heads / s.group() * columns * s.depth)),
        v(test.randomFloats(heads / s.group() * columns * s.depth)),
        dO(test.randomFloats(heads * s.rows * s.depth)),
        o(test.floats(heads * s.rows * s.depth)),
        stats(test.floats(2 * heads * s.rows)) {
    if (layer.isMasked())
      mask = test.randomFloats(s.maskBatch * s.maskHeads * s.maskRows *
                               s.maskColumns);
  }

  AttentionShape s;
  int64_t columns, heads;
  OneRank test;
  Buffer q, k, v, dO, o, stats;
  Buffer mask = {};

  void forward() {
    prepareAttention(test.rank, s);
    attention(test.rank, s, 1, q, k, v, mask, o, stats);
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
                     test.at(k)[(n / s.group() * columns + c) * s.depth + d];
          score *= s.scale;
          if (s.softcap > 0)
            score = s.softcap * std::tanh(score / s.softcap);
          if (mask) {
            const int64_t b = n / s.heads % s.maskBatch;
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
          sums->push_back(static_cast<float>(sum));
        const RandomStream stream = {42, static_cast<uint32_t>(s.dropoutId), 1,
                                     3};
        randomFactors(stream, s.dropoutRate, (n * s.rows + r) * columns,
                      columns, factors.data());
        for (int64_t d = 0; d < s.depth; ++d) {
          double value = 0;
          for (int64_t c = 0; c < seen; ++c)
            value += p[c] / sum * (s.dropoutRate > 0 ? factors[c] : 1) *
                     test.at(v)[(n / s.group() * columns + c) * s.depth + d];
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

static void checkForward(const AttentionLayer &layer) {
  Case c(layer);
  std::vector<float> sums;
  const auto expected = c.naive(nullptr, &sums);
  c.forward();
  EXPECT_TRUE(agree(c.test.read(c.o), expected, 1e-5));
  const auto stats = c.test.read(c.stats);
  for (size_t row = 0; row < sums.size(); ++row)
    EXPECT_NEAR(std::exp(stats[2 * row]) / stats[2 * row + 1] / sums[row], 1,
                1e-5);
}

TEST(Attention, OddSizes) {
  checkForward({.vectors = {2, 3, 37, 11}, .scale = 0.3f});
}

// Columns behind whole vectors are dot products if they are few.
TEST(Attention, ColumnsBehindWholeVectors) {
  for (const int64_t rows : {17, 18, 19, 65})
    checkForward({.vectors = {1, 2, rows, 32}, .scale = 0.2f});
  checkForward({.vectors = {1, 2, 66, 16}, .scale = 0.2f, .causal = true});
  // Keys too long for strips of 8 rows.
  checkForward({.vectors = {1, 1, 70, 64}, .columns = 1026, .scale = 0.1f});
}

TEST(Attention, CausalOverSeveralBlocks) {
  checkForward({.vectors = {1, 2, 200, 16}, .scale = 0.25f, .causal = true});
}

TEST(Attention, MoreKeysThanRows) {
  checkForward({.vectors = {1, 2, 70, 8}, .columns = 129});
}

// More keys than a CPU multiplies in strips of 8 rows.
TEST(Attention, LongKeys) {
  checkForward({.vectors = {1, 1, 70, 64}, .columns = 1030, .scale = 0.1f});
}

TEST(Attention, MaskOfAnyStretch) {
  checkForward({.vectors = {2, 2, 20, 8}, .mask = {2, 1, 1, 20}});
  checkForward({.vectors = {2, 2, 20, 8}, .mask = {1, 2, 20, 20}});
  checkForward(
      {.vectors = {2, 2, 20, 8}, .causal = true, .mask = {1, 1, 20, 1}});
}

TEST(Attention, MaskThatRepeatsOverSamples) {
  checkForward({.vectors = {6, 2, 20, 8}, .mask = {3, 1, 20, 20}});
  checkForward({.vectors = {4, 2, 9, 8}, .mask = {2, 2, 1, 9}});
}

TEST(Attention, HeadsThatShareKeys) {
  checkForward({.vectors = {2, 6, 20, 8}, .columns = 70, .keyHeads = 2});
  checkForward({.vectors = {2, 3, 70, 8},
                .scale = 0.4f,
                .causal = true,
                .mask = {2, 3, 1, 70},
                .keyHeads = 1});
}

TEST(Attention, BoundedScores) {
  for (const float softcap : {0.01f, 0.7f, 50.0f})
    checkForward({.vectors = {2, 2, 37, 11},
                  .scale = 0.5f,
                  .causal = true,
                  .mask = {2, 1, 1, 37},
                  .softcap = softcap});
}

TEST(Attention, Dropout) {
  checkForward({.vectors = {1, 2, 70, 8},
                .causal = true,
                .dropoutRate = 0.3f,
                .dropoutId = 4});
}

/// Every gradient against central differences of the definition, in some
/// places of each operand.
static void checkBackward(const AttentionLayer &layer) {
  Case c(layer);
  c.forward();
  std::vector<Buffer> operands = {c.q, c.k, c.v}, gradients;
  if (c.s.maskGradient)
    operands.push_back(c.mask);
  for (const Buffer operand : operands)
    gradients.push_back(c.test.randomFloats(operand.bytes / 4));
  attentionBackward(c.test.rank, c.s, 1, c.dO, c.q, c.k, c.v, c.o, c.stats,
                    c.mask, gradients[0], gradients[1], gradients[2],
                    gradients.size() > 3 ? gradients[3] : Buffer());
  for (size_t i = 0; i < operands.size(); ++i) {
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
  checkBackward({.vectors = {2, 2, 19, 5}, .scale = 0.4f});
}

TEST(AttentionBackward, LongKeys) {
  checkBackward({.vectors = {1, 1, 10, 64}, .columns = 1030, .scale = 0.1f});
}

TEST(AttentionBackward, ColumnsBehindWholeVectors) {
  for (const int64_t rows : {17, 18, 65})
    checkBackward({.vectors = {1, 1, rows, 16}, .scale = 0.2f});
  checkBackward({.vectors = {1, 1, 66, 16}, .scale = 0.2f, .causal = true});
  checkBackward({.vectors = {1, 1, 10, 64}, .columns = 1026, .scale = 0.1f});
}

TEST(AttentionBackward, CausalOverSeveralBlocks) {
  checkBackward({.vectors = {1, 1, 150, 8}, .scale = 0.3f, .causal = true});
}

TEST(AttentionBackward, FewerKeysAndMask) {
  checkBackward(
      {.vectors = {2, 1, 30, 8}, .columns = 18, .mask = {2, 1, 1, 18}});
}

TEST(AttentionBackward, HeadsThatShareKeys) {
  checkBackward({.vectors = {2, 4, 70, 5},
                 .scale = 0.4f,
                 .causal = true,
                 .mask = {1, 4, 1, 70},
                 .keyHeads = 2});
  checkBackward({.vectors = {2, 3, 1, 8}, .columns = 9, .keyHeads = 1});
  checkBackward({.vectors = {1, 2, 33, 8},
                 .dropoutRate = 0.25f,
                 .dropoutId = 7,
                 .keyHeads = 1});
}

TEST(AttentionBackward, BoundedScores) {
  for (const float softcap : {0.7f, 3.0f})
    checkBackward({.vectors = {2, 2, 70, 5},
                   .scale = 0.4f,
                   .causal = true,
                   .mask = {1, 2, 1, 70},
                   .softcap = softcap});
}

TEST(AttentionBackward, GradientOfTheMask) {
  for (const auto &[samples, heads] :
       {std::pair(1, 4), std::pair(2, 1), std::pair(1, 1), std::pair(2, 4)})
    checkBackward({.vectors = {2, 4, 19, 5},
                   .scale = 0.4f,
                   .mask = {samples, heads, 19, 19},
                   .keyHeads = 2,
                   .maskGradient = true});
  for (const int64_t heads : {1, 4})
    checkBackward({.vectors = {6, 4, 11, 5},
                   .scale = 0.4f,
                   .mask = {3, heads, 11, 11},
                   .keyHeads = 2,
                   .maskGradient = true});
  checkBackward({.vectors = {2, 2, 70, 5},
                 .scale = 0.4f,
                 .causal = true,
                 .dropoutRate = 0.25f,
                 .dropoutId = 7,
                 .mask = {1, 2, 70, 70},
                 .softcap = 2,
                 .maskGradient = true});
}

TEST(AttentionBackward, Dropout) {
  checkBackward({.vectors = {1, 2, 33, 8},
                 .causal = true,
                 .dropoutRate = 0.25f,
                 .dropoutId = 7});
}

//===----------------------------------------------------------------------===//
// Rows that see nothing, and scores far from zero
//===----------------------------------------------------------------------===//

namespace {
/// Attention and its gradients, in double but for the scores, which are f32 as
/// the operands are.
struct Exact {
  explicit Exact(Case &c);

  std::vector<float> o, dq, dk, dv;
};
} // namespace

Exact::Exact(Case &c)
    : o(c.heads * c.s.rows * c.s.depth), dq(o.size()),
      dk(c.heads / c.s.group() * c.columns * c.s.depth), dv(dk.size()) {
  const AttentionShape &s = c.s;
  auto vector = [&](Buffer buffer, int64_t row) {
    return &c.test.at(buffer)[row * s.depth];
  };
  auto dot = [&](const float *a, const float *b) {
    double sum = 0;
    for (int64_t d = 0; d < s.depth; ++d)
      sum += static_cast<double>(a[d]) * b[d];
    return sum;
  };
  for (int64_t row = 0; row < c.heads * s.rows; ++row) {
    const int64_t firstKey = row / s.rows / s.group() * c.columns;
    std::vector<double> p, dp;
    double largest = -INFINITY, sum = 0, mean = 0;
    for (int64_t j = 0; j < c.columns; ++j) {
      const auto score = static_cast<float>(
          s.scale * dot(vector(c.q, row), vector(c.k, firstKey + j)));
      const float added =
          c.mask ? c.test.at(c.mask)[row % s.rows * c.columns + j] : 0;
      p.push_back(score + added);
      dp.push_back(dot(vector(c.dO, row), vector(c.v, firstKey + j)));
      largest = std::max(largest, p.back());
    }
    if (largest == -INFINITY)
      continue;
    for (double &score : p)
      sum += score = std::exp(score - largest);
    for (int64_t j = 0; j < c.columns; ++j)
      mean += (p[j] /= sum) * dp[j];
    for (int64_t j = 0; j < c.columns; ++j)
      for (int64_t d = 0; d < s.depth; ++d) {
        const int64_t key = (firstKey + j) * s.depth + d;
        const int64_t query = row * s.depth + d;
        const double dScore = p[j] * (dp[j] - mean) * s.scale;
        o[query] += p[j] * c.test.at(c.v)[key];
        dv[key] += p[j] * c.test.at(c.dO)[query];
        dq[query] += dScore * c.test.at(c.k)[key];
        dk[key] += dScore * c.test.at(c.q)[query];
      }
  }
}

/// Operands whose products f32 has exactly: eighths and quarters, at most 1.
static void makeExact(Case &c) {
  for (const auto &[buffer, unit] : {std::pair(c.q, 4), std::pair(c.k, 2)})
    for (int64_t i = 0; i < buffer.bytes / 4; ++i)
      c.test.at(buffer)[i] = static_cast<float>(i * 7 % 9 - 4) / unit / 2;
}

static void expectExact(Case &c, double tolerance = 1e-5) {
  const Exact exact(c);
  c.forward();
  const Buffer dq = c.test.floats(c.q.bytes / 4);
  const Buffer dk = c.test.floats(c.k.bytes / 4);
  const Buffer dv = c.test.floats(c.v.bytes / 4);
  attentionBackward(c.test.rank, c.s, 1, c.dO, c.q, c.k, c.v, c.o, c.stats,
                    c.mask, dq, dk, dv);
  EXPECT_TRUE(agree(c.test.read(c.o), exact.o, tolerance)) << "o";
  EXPECT_TRUE(agree(c.test.read(dq), exact.dq, tolerance)) << "dq";
  EXPECT_TRUE(agree(c.test.read(dk), exact.dk, tolerance)) << "dk";
  EXPECT_TRUE(agree(c.test.read(dv), exact.dv, tolerance)) << "dv";
}

/// What models write into the rows of padding: the scores are all alike then,
/// or nearly so.
TEST(AttentionBackward, RowsThatAreMaskedByFiniteNumbers) {
  for (const float hidden : {-1e4f, -1e9f, -std::numeric_limits<float>::max()})
    for (const int64_t hiddenRows : {8, 64}) {
      Case c({.vectors = {1, 2, 64, 8}, .scale = 0.5f, .mask = {1, 1, 64, 64}});
      makeExact(c);
      for (int64_t i = 0; i < 64 * 64; ++i)
        c.test.at(c.mask)[i] = i / 64 < hiddenRows || i % 64 > 50 ? hidden : 0;
      SCOPED_TRACE(hidden);
      expectExact(c);
    }
}

TEST(AttentionBackward, ScoresOfAMillion) {
  Case c({.vectors = {1, 2, 40, 8}});
  makeExact(c);
  // All scores are 2^20 and some eighths, which f32 has exactly.
  for (int64_t i = 0; i < c.q.bytes / 4; ++i) {
    c.test.at(c.q)[i] *= 2;
    c.test.at(c.k)[i] *= 2;
    if (i % 8 == 0)
      c.test.at(c.q)[i] = c.test.at(c.k)[i] = 1024;
  }
  // The gradients of a row's scores sum to zero but for some units in the last
  // place, as the rounding of the row's sums has it; keys of 1024 multiply what
  // is left, which differs between processors of different vector lengths.
  constexpr double unitsInTheLastPlace = 32;
  expectExact(c, 1024 * unitsInTheLastPlace *
                     std::numeric_limits<float>::epsilon());
}

/// Nothing is seen: nothing comes out, and nothing flows back.
TEST(AttentionBackward, RowsThatSeeNothing) {
  for (const int64_t hiddenRows : {5, 70}) {
    Case c({.vectors = {1, 2, 70, 8},
            .scale = 0.5f,
            .mask = {1, 1, 70, 70},
            .keyHeads = 1});
    makeExact(c);
    for (int64_t i = 0; i < 70 * 70; ++i)
      c.test.at(c.mask)[i] = i / 70 < hiddenRows || i % 70 > 60
                                 ? -std::numeric_limits<float>::infinity()
                                 : 0;
    expectExact(c);
    EXPECT_EQ(c.test.read(c.o)[0], 0);
    EXPECT_EQ(c.test.read(c.stats)[0], 0);
    EXPECT_EQ(c.test.read(c.stats)[1], 0);
  }
}

TEST(AttentionBackward, ThreadsDoNotChangeBits) {
  for (const int64_t keyHeads : {6, 2, 1}) {
    Case c({.vectors = {2, 6, 70, 8},
            .causal = true,
            .mask = {1, 6, 70, 70},
            .keyHeads = keyHeads,
            .maskGradient = true});
    const Buffer gradients[] = {
        c.test.floats(c.q.bytes / 4), c.test.floats(c.k.bytes / 4),
        c.test.floats(c.v.bytes / 4), c.test.floats(c.mask.bytes / 4)};
    auto results = [&](int threads) {
      c.test.rank.setThreads(threads);
      c.forward();
      attentionBackward(c.test.rank, c.s, 1, c.dO, c.q, c.k, c.v, c.o, c.stats,
                        c.mask, gradients[0], gradients[1], gradients[2],
                        gradients[3]);
      std::vector<std::vector<float>> all{c.test.read(c.o)};
      for (const Buffer gradient : gradients)
        all.push_back(c.test.read(gradient));
      return all;
    };
    const auto alone = results(1);
    EXPECT_EQ(alone, results(3));
    EXPECT_EQ(alone, results(5));
  }
}
