//===- Probes.cpp - Library calls to be measured --------------------------===//
//
// Sizes are those of small layers: a run takes some milliseconds of one core.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Probes.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/calls/Calls.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/Rank.h"

#include <bit>

using namespace pipewright::runtime;

/// Inputs are read alone, so that whatever a call has written is no input of
/// another; sums have a buffer of their own. Each is larger than caches of a
/// core.
static constexpr int64_t mebi = int64_t{1} << 20, part = 16 * mebi;
static constexpr Buffer inputs = {0, part}, results = {part, part},
                        sums = {2 * part, part};

static constexpr MatmulShape product(ElementType type) {
  return {.m = 256, .n = 512, .k = 512, .type = type};
}

static constexpr ConvolutionShape convolution(ElementType type) {
  return {.n = 8,
          .c = 64,
          .h = 28,
          .w = 28,
          .o = 64,
          .kh = 3,
          .kw = 3,
          .padTop = 1,
          .padLeft = 1,
          .padBottom = 1,
          .padRight = 1,
          .type = type};
}

static constexpr AttentionShape causal(ElementType type) {
  return {.batch = 2,
          .heads = 8,
          .rows = 128,
          .depth = 64,
          .scale = 0.125f,
          .causal = true,
          .type = type};
}

static constexpr DropoutShape dropped = {
    .elements = mebi, .rate = 0.1f, .id = 1};

/// So small that hardly anything but the call takes time, and so many that a
/// clock sees them.
static constexpr MatmulShape tiny = {.m = 8, .n = 8, .k = 8};
static constexpr int64_t calls = 1000;

/// Of a convolution.
static int64_t numberOf(ElementType type) {
  return type == ElementType::BF16 ? 1 : 0;
}

static void multiply(Rank &rank, ElementType type) {
  const MatmulShape s = product(type);
  const int64_t size = byteWidth(type);
  matmul(rank, s, inputs.at(0, s.m * s.k * size),
         inputs.at(4 * mebi, s.k * s.n * size), results.at(0, s.m * s.n * 4));
}

static void convolve(Rank &rank, ElementType type) {
  const ConvolutionShape s = convolution(type);
  const int64_t size = byteWidth(type), image = s.n * s.c * s.h * s.w * size;
  convolutionForward(rank, numberOf(type), inputs.at(0, image),
                     inputs.at(4 * mebi, s.o * s.c * s.kh * s.kw * size), {},
                     results.at(0, image));
}

static void attend(Rank &rank, ElementType type) {
  const AttentionShape s = causal(type);
  const int64_t rows = s.batch * s.heads * s.rows,
                bytes = rows * s.depth * byteWidth(type);
  attention(rank, s, 0, inputs.at(0, bytes), inputs.at(4 * mebi, bytes),
            inputs.at(8 * mebi, bytes), {}, results.at(0, bytes),
            results.at(8 * mebi, rows * 2 * 4));
}

namespace {
/// What is measured, and how.
struct Row {
  Probe probe;
  void (*run)(Rank &rank);
};
} // namespace

static constexpr ElementType f32 = ElementType::F32, bf16 = ElementType::BF16;

/// Those of bf16 are the last ones.
static std::vector<Row> rowsHere() {
  const double productWork = costOf(product(f32)).operations;
  const double convolutionWork =
      costOf(convolution(f32), ConvolutionDirection::Forward).operations;
  const double attentionWork =
      costOf(causal(f32), /*backward=*/false).operations;
  std::vector<Row> rows = {
      {{"matmul_flops", "f32", productWork},
       [](Rank &rank) { multiply(rank, f32); }},
      {{"convolution_flops", "f32", convolutionWork},
       [](Rank &rank) { convolve(rank, f32); }},
      {{"attention_flops", "f32", attentionWork},
       [](Rank &rank) { attend(rank, f32); }},
      // Two are read and one is written.
      {{"bandwidth", "", 3.0 * part},
       [](Rank &rank) { accumulate(rank, inputs, sums); }},
      {{"seconds_per_random", "", dropped.elements, /*isRate=*/false},
       [](Rank &rank) {
         const int64_t bytes = dropped.elements * 4;
         dropout(rank, dropped, 0, inputs.at(0, bytes), results.at(0, bytes));
       }},
      {{"seconds_per_call", "", calls, /*isRate=*/false}, [](Rank &rank) {
         for (int64_t call = 0; call < calls; ++call)
           matmul(rank, tiny, inputs.at(0, 4 * tiny.m * tiny.k),
                  inputs.at(mebi, 4 * tiny.k * tiny.n),
                  results.at(0, 4 * tiny.m * tiny.n));
       }}};
  const std::vector<Row> inBFloat16 = {
      {{"matmul_flops", "bf16", productWork},
       [](Rank &rank) { multiply(rank, bf16); }},
      {{"convolution_flops", "bf16", convolutionWork},
       [](Rank &rank) { convolve(rank, bf16); }},
      {{"attention_flops", "bf16", attentionWork},
       [](Rank &rank) { attend(rank, bf16); }}};
  if (hasBFloat16Products())
    rows.insert(rows.end(), inBFloat16.begin(), inBFloat16.end());
  return rows;
}

static void setUpProbes(Rank &rank) {
  // About 0.01, in f32 and in bf16.
  fill(rank, std::bit_cast<float>(0x3C233C23), inputs);
  for (const ElementType type : {f32, bf16}) {
    if (type == bf16 && !hasBFloat16Products())
      continue;
    prepareMatmul(rank, product(type));
    prepareConvolutionForward(rank, numberOf(type), convolution(type),
                              /*hasBias=*/false);
    prepareAttention(rank, causal(type));
  }
}

static void runProbe(Rank &rank) {
  static const std::vector<Row> rows = rowsHere();
  rows[rank.step()].run(rank);
}

ProbeProgram pipewright::runtime::cpuProbes() {
  ProbeProgram program;
  program.rank.arenaBytes = 3 * part;
  program.rank.setUp = setUpProbes;
  program.rank.step = runProbe;
  for (const Row &row : rowsHere())
    program.probes.push_back(row.probe);
  return program;
}
