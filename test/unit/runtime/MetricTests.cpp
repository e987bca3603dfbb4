//===- MetricTests.cpp - What people ask of a classifier ------------------===//

#include "runtime/core/Error.h"
#include "runtime/train/Metrics.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace pipewright::runtime;

namespace {

/// Labels [2, 2] of micro-batches of two samples, of which -100 is ignored; the
/// output has logits over seven classes.
struct Classifier {
  explicit Classifier(std::vector<int64_t> logits) {
    program.microBatches = 2;
    program.microBatchSize = 2;
    program.inputs = {
        {.name = "labels", .type = ElementType::I64, .shape = {2, 2}},
        {.name = "count",
         .shape = {},
         .counted = {.input = 0, .ignored = -100, .ranges = {{0, 2}}}}};
    OutputInfo output = {.name = "logits"};
    output.shape = std::move(logits);
    program.outputs = {output};
  }
  Program program;
};

class Labels : public BatchIo {
public:
  explicit Labels(std::vector<int64_t> labels) : labels(std::move(labels)) {}
  void load(int64_t, int64_t, void *destination, int64_t bytes) override {
    ASSERT_EQ(bytes, static_cast<int64_t>(labels.size() * 8));
    std::memcpy(destination, labels.data(), bytes);
  }
  void store(int64_t, int64_t, const void *, int64_t) override {}
  bool wants(int64_t, int64_t) override { return false; }

private:
  std::vector<int64_t> labels;
};

const std::vector<Metric> all = {Metric::Accuracy, Metric::Top5,
                                 Metric::Perplexity};

} // namespace

TEST(Metrics, CountsTheFirstAndTheFirstFive) {
  Classifier model({2, 2, 7});
  // Of four labels: the largest, the fifth, the sixth, and one to ignore.
  Labels labels({0, 4, 5, -100});
  MetricIo io(model.program, labels, all);
  std::vector<float> logits;
  for (int row = 0; row < 4; ++row)
    for (int c = 0; c < 7; ++c)
      logits.push_back(static_cast<float>(-c));
  EXPECT_TRUE(io.wants(0, 0));
  io.store(0, 0, logits.data(), static_cast<int64_t>(logits.size() * 4));
  EXPECT_EQ(io.counts().counted, 3);
  EXPECT_EQ(io.counts().right, 1);
  EXPECT_EQ(io.counts().amongFive, 2);
  Evaluation result = io.counts();
  result.loss = std::log(2.0);
  EXPECT_EQ(evaluationText(result, all),
            "loss 0.6931   accuracy 33.3 %   top5 66.7 %   perplexity 2");
}

TEST(Metrics, ClassesMayBeTheSecondDimension) {
  Classifier model({2, 7, 2});
  Labels labels({3, 1, 3, 2});
  MetricIo io(model.program, labels, {Metric::Accuracy});
  std::vector<float> logits(2 * 7 * 2, 0);
  // Sample 0: right at both places; sample 1: at none.
  logits[3 * 2 + 0] = 1;
  logits[1 * 2 + 1] = 1;
  logits[14 + 4 * 2 + 0] = 1;
  logits[14 + 4 * 2 + 1] = 1;
  io.store(0, 0, logits.data(), 0);
  EXPECT_EQ(io.counts().right, 2);
  EXPECT_EQ(io.counts().counted, 4);
}

TEST(Metrics, TheFirstOfEqualLogitsIsTheGuessAndNaNIsNone) {
  Classifier model({2, 2, 7});
  Labels labels({0, 1, 0, 0});
  MetricIo io(model.program, labels, {Metric::Accuracy});
  std::vector<float> logits(4 * 7, 0);
  logits[2 * 7] = NAN;
  io.store(0, 0, logits.data(), 0);
  EXPECT_EQ(io.counts().right, 2);
}

TEST(Metrics, SamplesThatFillAStepUpDoNotCount) {
  Classifier model({2, 2, 7});
  Labels labels({0, 0, 0, 0});
  MetricIo io(model.program, labels, {Metric::Accuracy});
  io.setSamples(3);
  const std::vector<float> logits(4 * 7, 0);
  io.store(0, 0, logits.data(), 0);
  io.store(0, 1, logits.data(), 0);
  EXPECT_EQ(io.counts().counted, 6);
}

TEST(Metrics, WhatIsMissingIsSaid) {
  Classifier model({2, 3});
  EXPECT_NO_THROW(checkMetrics(model.program, {Metric::Perplexity}));
  EXPECT_THROW(checkMetrics(model.program, {Metric::Accuracy}), Error);
  model.program.inputs = {};
  EXPECT_THROW(checkMetrics(model.program, {Metric::Top5}), Error);
  EXPECT_THROW(parseMetrics("--metrics", "accuracy,f1"), Error);
}
