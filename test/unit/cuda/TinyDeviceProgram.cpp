//===- TinyDeviceProgram.cpp - A GPU program as the compiler writes it ----===//
//
// z = x * w0 * w1 on two ranks, two micro-batches, loss = z . z, gradients of
// half of that. Small enough to be written by hand; tests run it with all kinds
// of options. Variables of the environment break it in some way.
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/TinyKernels.h"

#include "runtime/DeviceRuntime.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Cudnn.h"
#include "runtime/cuda/Driver.h"

#include <chrono>
#include <cstdlib>
#include <thread>

using namespace pipewright::runtime;

namespace {
constexpr int64_t rowBytes = 4 * tiny::elements;

constexpr Buffer part(int64_t number) { return {64 * number, rowBytes}; }
constexpr Buffer scalar(int64_t number) { return {64 * number, 4}; }

// Rank 0 and rank 1.
constexpr Buffer weight = scalar(0), gradient = scalar(1);
constexpr Buffer hyper = {128, 16};
constexpr Buffer x[2] = {part(3), part(4)};
constexpr Buffer sent[2] = {part(5), part(6)};
constexpr Buffer received[2] = {part(7), part(8)};
// Rank 1.
constexpr Buffer z = part(9), loss = scalar(10);
constexpr int64_t rank0Bytes = 8 * 64 + rowBytes, rank1Bytes = 10 * 64 + 4;
} // namespace

static void update(DeviceRank &rank) {
  rank.task("U", rank.number(), 0, [&] {
    rank.loadHyper(hyper);
    launch(rank, tiny::sgd, {weight, gradient, hyper});
  });
}

static void rank0Step(DeviceRank &rank) {
  auto forward = [&](int64_t m) {
    rank.loadInput(0, m, x[m]);
    rank.task("F", 0, m,
              [&] { launch(rank, tiny::scale, {x[m], weight, sent[m]}); });
    rank.record(compute, 2 * m);
    if (!std::getenv("TINY_NO_EVENT"))
      rank.wait(sendTo(1), 2 * m);
    rank.postSend(1, sent[m], 2 * m + 1);
  };
  auto backward = [&](int64_t m) {
    rank.wait(compute, 4 + m);
    rank.task("B", 0, m,
              [&] { launch(rank, tiny::dot, {received[m], x[m], gradient}); });
  };
  if (std::getenv("TINY_ALTERNATING")) {
    // What rank 1 waits for from the start on comes after its own first task.
    for (int64_t m = 0; m < 2; ++m) {
      forward(m);
      rank.postReceive(1, received[m], 4 + m);
      backward(m);
    }
  } else {
    forward(0);
    forward(1);
    for (int64_t m = 0; m < 2; ++m)
      rank.postReceive(1, received[m], 4 + m);
    backward(0);
    backward(1);
  }
  // The next step overwrites what was sent.
  rank.wait(compute, 1);
  rank.wait(compute, 3);
  update(rank);
}

/// What the first task of rank 1 may do wrong.
static void misbehave(DeviceRank &rank) {
  if (std::getenv("TINY_MISSING_KERNEL"))
    launch(rank, tiny::missing, {z});
  // Reads past the end of the arena, which is the loss.
  if (std::getenv("TINY_BAD_ADDRESS"))
    launch(rank, tiny::scale, {loss, weight, z});
  if (std::getenv("TINY_STUCK"))
    PIPEWRIGHT_CUDA(cuLaunchHostFunc(
        rank.computeStream(),
        [](void *) { std::this_thread::sleep_for(std::chrono::seconds(4)); },
        nullptr));
  // Nothing that waits can be captured.
  if (std::getenv("TINY_UNCAPTURABLE"))
    PIPEWRIGHT_CUDA(cuStreamSynchronize(rank.computeStream()));
}

static void rank1Step(DeviceRank &rank) {
  // A transfer that does not fit.
  if (std::getenv("TINY_WRONG_SIZE"))
    rank.postReceive(0, received[0].at(0, 4), 6);
  for (int64_t m = 0; m < 2; ++m)
    rank.postReceive(0, received[m], m);
  for (int64_t m = 0; m < 2; ++m) {
    rank.wait(compute, m);
    rank.task("F", 1, m, [&] {
      zero(rank, loss);
      launch(rank, tiny::scale, {received[m], weight, z});
      launch(rank, tiny::dot, {z, z, loss});
      rank.reportLoss(m, loss);
      misbehave(rank);
    });
    rank.task("B", 1, m, [&] {
      launch(rank, tiny::dot, {z, received[m], gradient});
      launch(rank, tiny::scale, {z, weight, sent[m]});
    });
    rank.record(compute, 2 + 2 * m);
    rank.wait(sendTo(0), 2 + 2 * m);
    // A rank that never sends.
    if (m == 1 && std::getenv("TINY_SILENT"))
      continue;
    rank.postSend(0, sent[m], 3 + 2 * m);
  }
  rank.wait(compute, 3);
  if (!std::getenv("TINY_SILENT"))
    rank.wait(compute, 5);
  update(rank);
}

static void rank0Evaluate(DeviceRank &rank) {
  for (int64_t m = 0; m < 2; ++m) {
    rank.loadInput(0, m, x[m]);
    rank.task("F", 0, m,
              [&] { launch(rank, tiny::scale, {x[m], weight, sent[m]}); });
    rank.record(compute, 2 * m);
    rank.wait(sendTo(1), 2 * m);
    rank.postSend(1, sent[m], 2 * m + 1);
  }
}

static void rank1Evaluate(DeviceRank &rank) {
  for (int64_t m = 0; m < 2; ++m) {
    rank.postReceive(0, received[m], m);
    rank.wait(compute, m);
    rank.task("F", 1, m, [&] {
      zero(rank, loss);
      launch(rank, tiny::scale, {received[m], weight, z});
      launch(rank, tiny::dot, {z, z, loss});
      rank.reportLoss(m, loss);
      rank.storeOutput(0, m, z);
    });
  }
}

static void setUp(DeviceRank &rank) {
  // Opened by a program's first product or convolution.
  if (std::getenv("TINY_MULTIPLIES"))
    cublasLt();
  if (std::getenv("TINY_CONVOLVES"))
    cudnn();
  for (const DeviceKernel *kernel : tiny::device.kernels)
    prepare(rank, *kernel);
  if (rank.number() == 1)
    rank.reserveWorkspace(std::getenv("TINY_HUNGRY_KERNEL") ? int64_t{1} << 50
                                                            : 4096);
}

int main(int argc, char **argv) {
  const bool hungry = std::getenv("TINY_HUNGRY");
  Program program;
  program.name = "tiny";
  program.microBatches = 2;
  program.microBatchSize = 1;
  program.optimizer = {.learningRate = 0.01f,
                       .gradientScale = 0.5f,
                       .scalars = {{StepScalar::LearningRate},
                                   {StepScalar::BiasCorrection},
                                   {StepScalar::BiasCorrection},
                                   {StepScalar::GradientScale}}};
  program.inputs = {{.name = "x", .shape = {1, tiny::elements}}};
  program.outputs = {{"z", ElementType::F32, {1, tiny::elements}}};
  program.ranks = {{.arenaBytes = hungry ? int64_t{1} << 50 : rank0Bytes,
                    .tensors = {{.name = "w0", .buffer = weight, .shape = "1"},
                                {.name = "w0",
                                 .buffer = gradient,
                                 .shape = "1",
                                 .role = Role::Gradient}},
                    .inputs = {0},
                    .step = rank0Step,
                    .evaluate = rank0Evaluate,
                    .setUp = setUp,
                    .predictedStepSeconds = 1e-4,
                    .sendsTo = {1},
                    .events = 6,
                    .evaluateEvents = 4},
                   {.arenaBytes = rank1Bytes,
                    .tensors = {{.name = "w1", .buffer = weight, .shape = "1"},
                                {.name = "w1",
                                 .buffer = gradient,
                                 .shape = "1",
                                 .role = Role::Gradient}},
                    .step = rank1Step,
                    .evaluate = rank1Evaluate,
                    .setUp = setUp,
                    .memory = {{"weights and gradients", 8}},
                    .sendsTo = {0},
                    .events = 7,
                    .evaluateEvents = 2}};
  program.timetable = "F0 F1 B0 B1\n";
  program.planJson = "{}\n";
  program.device = &tiny::device;
  return runProgram(argc, argv, program);
}
