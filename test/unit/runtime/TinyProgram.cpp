//===- TinyProgram.cpp - A program as the compiler would write it ---------===//
//
// A bigram model of bytes on two ranks: embedding and dropout on rank 0,
// projection and loss on rank 1, two micro-batches. Small enough to be
// written by hand; tests run it with all kinds of options.
//
//===----------------------------------------------------------------------===//

#include "runtime/Runtime.h"

#include <cmath>
#include <cstdlib>

using namespace pipewright::runtime;

namespace {
constexpr int64_t samples = 2, length = 8, width = 16, vocabulary = 256;
constexpr int64_t rows = samples * length;
constexpr int64_t hiddenBytes = rows * width * 4;
constexpr int64_t tokenBytes = rows * 8;
constexpr int64_t logitBytes = rows * vocabulary * 4;
constexpr int64_t weightBytes = vocabulary * width * 4;

// Rank 0.
constexpr Buffer table = {0, weightBytes};
constexpr Buffer tableGradient = {weightBytes, weightBytes};
constexpr Buffer tokens[2] = {{2 * weightBytes, tokenBytes},
                              {2 * weightBytes + tokenBytes, tokenBytes}};
constexpr int64_t hiddenAt = 2 * weightBytes + 2 * tokenBytes;
constexpr Buffer hidden[2] = {{hiddenAt, hiddenBytes},
                              {hiddenAt + hiddenBytes, hiddenBytes}};
constexpr int64_t rank0Bytes = hiddenAt + 2 * hiddenBytes;

// Rank 1.
constexpr Buffer head = {0, weightBytes};
constexpr Buffer headGradient = {weightBytes, weightBytes};
constexpr Buffer received[2] = {{2 * weightBytes, hiddenBytes},
                                {2 * weightBytes + hiddenBytes, hiddenBytes}};
constexpr int64_t targetsAt = 2 * weightBytes + 2 * hiddenBytes;
constexpr Buffer targets = {targetsAt, tokenBytes};
constexpr Buffer logits = {targetsAt + tokenBytes, logitBytes};
constexpr Buffer loss = {targetsAt + tokenBytes + logitBytes, 64};
constexpr int64_t rank1Bytes = targetsAt + tokenBytes + logitBytes + 64;
} // namespace

/// Mean cross entropy; turns logits into their gradient.
static void crossEntropy(void *logits, const void *labels, void *loss) {
  float *x = static_cast<float *>(logits);
  const int64_t *label = static_cast<const int64_t *>(labels);
  double total = 0;
  for (int64_t r = 0; r < rows; ++r, x += vocabulary) {
    double sum = 0;
    for (int64_t c = 0; c < vocabulary; ++c)
      sum += std::exp(static_cast<double>(x[c]));
    total += std::log(sum) - x[label[r]];
    for (int64_t c = 0; c < vocabulary; ++c)
      x[c] = static_cast<float>(
          (std::exp(static_cast<double>(x[c])) / sum - (c == label[r])) / rows);
  }
  *static_cast<float *>(loss) = static_cast<float>(total / rows);
}

static void sgd(void *weight, const void *gradient, const void *hyper) {
  float *w = static_cast<float *>(weight);
  const float *g = static_cast<const float *>(gradient);
  const float *h = static_cast<const float *>(hyper);
  for (int64_t i = 0; i < vocabulary * width; ++i)
    w[i] -= h[0] * h[3] * g[i];
}

static constexpr EmbeddingShape embeddingShape = {
    .rows = vocabulary, .width = width, .count = rows};
static constexpr DropoutShape dropoutShape = {
    .elements = rows * width, .rate = 0.1f, .id = 1};

static void rank0Step(Rank &rank) {
  zero(rank, tableGradient);
  for (int64_t m = 0; m < 2; ++m) {
    rank.task("F", 0, m);
    rank.loadInput(0, m, tokens[m]);
    embedding(rank, embeddingShape, table, tokens[m], hidden[m]);
    dropout(rank, dropoutShape, m, hidden[m], hidden[m]);
    rank.postSend(1, hidden[m]);
  }
  for (int64_t m = 0; m < 2; ++m) {
    rank.waitSend(1);
    rank.postReceive(1, hidden[m]);
  }
  for (int64_t m = 0; m < 2; ++m) {
    rank.waitReceive(1);
    rank.task("B", 0, m);
    dropout(rank, dropoutShape, m, hidden[m], hidden[m]);
    embeddingBackward(rank, embeddingShape, hidden[m], tokens[m], tableGradient,
                      true);
  }
  rank.task("U", 0, 0);
  launch(rank, "sgd", sgd, table, tableGradient, rank.hyper());
}

static void rank1Step(Rank &rank) {
  // For the test of failures: rank 1 breaks, rank 0 waits for it.
  if (std::getenv("TINY_FAIL"))
    rank.postReceive(0, received[0].at(0, 4));
  zero(rank, headGradient);
  for (int64_t m = 0; m < 2; ++m)
    rank.postReceive(0, received[m]);
  for (int64_t m = 0; m < 2; ++m) {
    rank.loadInput(1, m, targets);
    rank.waitReceive(0);
    rank.task("F", 1, m);
    matmul(rank, {.m = rows, .n = vocabulary, .k = width}, received[m], head,
           logits);
    launch(rank, "cross_entropy", crossEntropy, logits, targets, loss);
    rank.reportLoss(m, loss.at(0, 4));
    rank.task("B", 1, m);
    matmul(
        rank,
        {.m = width, .n = vocabulary, .k = rows, .transposeA = true, .beta = 1},
        received[m], logits, headGradient);
    matmul(rank, {.m = rows, .n = width, .k = vocabulary, .transposeB = true},
           logits, head, received[m]);
    rank.postSend(0, received[m]);
  }
  rank.waitSend(0);
  rank.waitSend(0);
  rank.data<char>(loss);
  rank.task("U", 1, 0);
  launch(rank, "sgd", sgd, head, headGradient, rank.hyper());
}

static void rank0Evaluate(Rank &rank) {
  for (int64_t m = 0; m < 2; ++m) {
    rank.loadInput(0, m, tokens[m]);
    embedding(rank, embeddingShape, table, tokens[m], hidden[m]);
    rank.postSend(1, hidden[m]);
    rank.waitSend(1);
  }
}

static void rank1Evaluate(Rank &rank) {
  for (int64_t m = 0; m < 2; ++m) {
    rank.loadInput(1, m, targets);
    rank.postReceive(0, received[m]);
    rank.waitReceive(0);
    matmul(rank, {.m = rows, .n = vocabulary, .k = width}, received[m], head,
           logits);
    rank.storeOutput(0, m, logits);
    launch(rank, "cross_entropy", crossEntropy, logits, targets, loss);
    rank.reportLoss(m, loss.at(0, 4));
  }
}

int main(int argc, char **argv) {
  Program program;
  program.name = "tiny";
  program.microBatches = 2;
  program.microBatchSize = samples;
  program.optimizer = {.learningRate = 0.5f,
                       .gradientScale = 0.5f,
                       .scalars = {{StepScalar::LearningRate},
                                   {StepScalar::BiasCorrection},
                                   {StepScalar::BiasCorrection},
                                   {StepScalar::GradientScale}}};
  program.inputs = {{.name = "tokens",
                     .type = ElementType::I64,
                     .shape = {samples, length},
                     .limit = vocabulary},
                    {.name = "targets",
                     .type = ElementType::I64,
                     .shape = {samples, length},
                     .limit = vocabulary}};
  program.outputs = {
      {"logits", ElementType::F32, {samples, length, vocabulary}}};
  program.ranks = {
      {.arenaBytes = rank0Bytes,
       .tensors = {{"table", table, "256x16"},
                   {"table", tableGradient, "256x16", Role::Gradient}},
       .inputs = {0},
       .step = rank0Step,
       .evaluate = rank0Evaluate,
       .predictedStepSeconds = 1e-4},
      {.arenaBytes = rank1Bytes,
       .tensors = {{"head", head, "16x256"},
                   {"head", headGradient, "16x256", Role::Gradient}},
       .inputs = {1},
       .step = rank1Step,
       .evaluate = rank1Evaluate,
       .memory = {{"weights and gradients", 2 * weightBytes}},
       .predictedStepSeconds = 2e-4}};
  program.timetable = "F0 F1 B0 B1\n";
  program.planJson = "{}\n";
  return runProgram(argc, argv, program);
}
