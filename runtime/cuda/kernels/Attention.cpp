//===- Attention.cpp - Attention on the GPU -------------------------------===//
//
// By cuDNN where it can (CudnnAttention.cpp), else by the kernels of
// Attention.cu, which keep tiles of scores in shared memory.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/AttentionStrides.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/cuda/kernels/CudnnAttention.h"

using namespace pipewright::runtime;

namespace {
/// The rows of a block's tiles, and its threads.
struct Tile {
  int64_t rows, threads;
};
/// Kernels for vectors of at most this length: as in
/// builtin/AttentionTiles.cuh.
struct Variant {
  int64_t depth;
  Tile ofFloat, ofBf16;
};
} // namespace

static constexpr Variant variants[] = {{32, {32, 64}, {64, 128}},
                                       {64, {32, 64}, {64, 128}},
                                       {128, {16, 64}, {32, 64}},
                                       {longestDeviceVector, {8, 64}, {8, 64}}};

static const Variant &variantOf(const AttentionShape &s) {
  for (const Variant &variant : variants)
    if (s.depth <= variant.depth)
      return variant;
  fail("attention over vectors of ", s.depth,
       " elements: kernels for GPUs go to ", longestDeviceVector);
}

static Tile tileOf(const AttentionShape &s) {
  const Variant &variant = variantOf(s);
  return s.type == ElementType::BF16 ? variant.ofBf16 : variant.ofFloat;
}

/// "attention_dq" -> "attention_dq_64_bf16".
static BuiltinKernel kernelFor(const AttentionShape &s, const char *name) {
  return {std::string(name) + "_" + std::to_string(variantOf(s).depth) +
              typeSuffix(s.type),
          BuiltinImage::Attention};
}

static VectorStrides vectorStrides(const AttentionStrides &strides) {
  return {strides.sample, strides.head,
          kernelSize(strides.row, "a row of attention")};
}

/// Parameters for blocks that own tiles of `own` rows or columns, of a
/// micro-batch by its number among those of all replicas.
static AttentionParameters parametersOf(const AttentionShape &s,
                                        int64_t microBatch, int64_t own) {
  auto narrow = [](int64_t size) {
    return kernelSize(size, "a dimension of attention");
  };
  const int64_t tile = tileOf(s).rows;
  auto step = [](int64_t size, int64_t distance) {
    return size == 1 ? 0 : distance;
  };
  AttentionParameters p = {};
  p.batch = narrow(s.batch);
  p.heads = narrow(s.heads);
  p.rows = narrow(s.rows);
  p.columns = narrow(keysOf(s));
  p.depth = narrow(s.depth);
  p.group = narrow(s.group());
  p.tiles = narrow((own + tile - 1) / tile);
  p.causal = s.causal;
  p.scale = s.scale;
  if (s.softcap > 0 && s.scale != 0) {
    p.bound = s.softcap / s.scale;
    p.inverseBound = s.scale / s.softcap;
  }
  p.rowsAt = vectorStrides(rowStrides(s));
  p.columnsAt = vectorStrides(keyStrides(s));
  p.outputsAt = vectorStrides(outputStrides(s));
  p.maskColumn = step(s.maskColumns, 1);
  p.maskRow = step(s.maskRows, s.maskColumns);
  p.maskHead = step(s.maskHeads, s.maskRows * s.maskColumns);
  p.maskSamples = narrow(s.maskBatch);
  p.maskBatch = step(s.maskBatch, s.maskHeads * s.maskRows * s.maskColumns);
  p.dropout = {static_cast<uint32_t>(s.dropoutId),
               static_cast<uint32_t>(microBatch), dropThreshold(s.dropoutRate),
               s.dropoutRate > 0 ? 1 / (1 - s.dropoutRate) : 1.0f};
  return p;
}

/// The bytes in which backward keeps one number for each row: dq's kernel
/// leaves it for that of dk and dv.
static int64_t meansBytes(const AttentionShape &s) {
  return s.batch * s.heads * s.rows * static_cast<int64_t>(sizeof(float));
}

template <>
void pipewright::runtime::prepareAttention(DeviceRank &rank,
                                           const AttentionShape &s) {
  if (prepareCudnnAttention(rank, s))
    return;
  prepareBuiltin(rank, kernelFor(s, "attention"));
  rank.reserveWorkspace(meansBytes(s));
}

template <>
void pipewright::runtime::attention(DeviceRank &rank, const AttentionShape &s,
                                    int64_t microBatch, Buffer q, Buffer k,
                                    Buffer v, Buffer mask, Buffer o,
                                    Buffer stats) {
  const MeasuredCall measured(rank, [&] { return costOf(s, false); });
  if (cudnnAttention(rank, s, q, k, v, o, stats))
    return;
  const AttentionParameters p =
      parametersOf(s, rank.numberInBatch(microBatch), s.rows);
  launchBuiltin(rank, kernelFor(s, "attention"), s.batch * s.heads * p.tiles,
                tileOf(s).threads, p, rank.randomState(), rank.device<char>(q),
                rank.device<char>(k), rank.device<char>(v),
                rank.device<float>(mask), rank.device<char>(o),
                rank.device<float>(stats));
}

template <>
void pipewright::runtime::attentionBackward(
    DeviceRank &rank, const AttentionShape &s, int64_t microBatch, Buffer dO,
    Buffer q, Buffer k, Buffer v, Buffer o, Buffer stats, Buffer mask,
    Buffer dq, Buffer dk, Buffer dv, Buffer dMask) {
  const MeasuredCall measured(rank, [&] { return costOf(s, true); });
  if (cudnnAttentionBackward(rank, s, dO, q, k, v, o, stats, dq, dk, dv))
    return;
  const int64_t heads = s.batch * s.heads;
  float *means = static_cast<float *>(rank.workspace(meansBytes(s)));
  const char *gradient = rank.device<char>(dO);
  const char *queries = rank.device<char>(q);
  const char *keys = rank.device<char>(k);
  const char *values = rank.device<char>(v);
  const float *added = rank.device<float>(mask);
  const float *sums = rank.device<float>(stats);

  const AttentionParameters byRow =
      parametersOf(s, rank.numberInBatch(microBatch), s.rows);
  launchBuiltin(rank, kernelFor(s, "attention_dq"), heads * byRow.tiles,
                tileOf(s).threads, byRow, rank.randomState(), gradient, queries,
                keys, values, added, sums, means, rank.device<char>(dq));
  const AttentionParameters byColumn =
      parametersOf(s, rank.numberInBatch(microBatch), keysOf(s));
  launchBuiltin(rank, kernelFor(s, "attention_dkv"),
                heads / s.group() * byColumn.tiles, tileOf(s).threads, byColumn,
                rank.randomState(), gradient, queries, keys, values, added,
                sums, means, rank.device<char>(dk), rank.device<char>(dv));
  if (s.maskGradient)
    launchBuiltin(rank, kernelFor(s, "attention_dmask"),
                  s.maskBatch * s.maskHeads * byRow.tiles * byColumn.tiles,
                  tileOf(s).threads, byRow, rank.randomState(), gradient,
                  queries, keys, values, added, sums,
                  static_cast<const float *>(means), rank.device<float>(dMask));
}
