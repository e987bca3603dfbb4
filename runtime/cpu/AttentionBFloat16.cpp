//===- AttentionBFloat16.cpp - Attention on bf16 operands -----------------===//
//
// Blocks of rows as in f32. All five products are bf16 with f32 sums; scores,
// softmax and its gradient are f32, and what a product reads of them
// (probabilities before they are divided by their sum, gradients of scores) is
// rounded to bf16. Gradients of keys and values are summed in f32 over blocks
// and over the heads of q that read them.
//
// oneDNN's fast products want dense operands: blocks of scores have no gap
// between rows, so rows that are not whole vectors go through a copy.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/AttentionBFloat16.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/AttentionRows.h"
#include "runtime/cpu/BFloat16Product.h"
#include "runtime/cpu/Parallel.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

using namespace pipewright::runtime;

namespace {

/// The products of one block of rows: each sees the first `visible` columns.
struct Block {
  int64_t first, rows, visible;
  BFloat16Product scores, out, dP, dQ, dKeys;

  Block forThread() const {
    return {first,           rows,           visible,        scores.forThread(),
            out.forThread(), dP.forThread(), dQ.forThread(), dKeys.forThread()};
  }
};

/// What products depend on.
using Key = std::tuple<int64_t, int64_t, int64_t, float, bool>;

/// One thread's share: nothing in it is touched by two threads.
struct Worker {
  explicit Worker(const dnnl::engine &engine) : stream(engine) {}

  dnnl::stream stream;
  std::map<Key, std::vector<Block>> blocks;
};

/// Where a thread's temporaries lie.
struct Room {
  float *scores, *gradients;
  /// Two rows.
  float *rows;
  /// Copies of a row of each.
  float *scoreRow, *gradientRow;
  float *out, *dK, *dV;
  /// What products read of scores and gradients.
  BFloat16 *shortScores, *shortGradients;
  char *productScratch;
};

class BFloat16Attention : public LibraryState {
public:
  ~BFloat16Attention() override { std::free(memory); }

  void prepare(Rank &rank, const AttentionShape &shape);
  std::vector<Block> &blocks(const AttentionShape &shape, int64_t thread);
  Worker &worker(int64_t thread) { return workers[thread]; }
  int64_t threads() const { return workers.size(); }
  Room room(const AttentionShape &shape, int64_t thread) const {
    return layOut(shape, memory + thread * threadBytes).first;
  }

private:
  std::vector<Block> makeBlocks(const AttentionShape &shape) const;
  std::pair<Room, int64_t> layOut(const AttentionShape &shape,
                                  char *from) const;
  void reserve(Rank &rank, int64_t bytes);

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<Worker> workers;
  char *memory = nullptr;
  /// Temporary memory of each thread.
  int64_t threadBytes = 0;
  int64_t productBytes = 0;
};

} // namespace

static Key keyOf(const AttentionShape &s) {
  return {s.rows, keysOf(s), s.depth, s.scale, s.causal};
}

/// How far a block sees. Rounded up, so that long sequences get by with some
/// sixteen sets of products; what is too far is masked.
static int64_t visibleFrom(const AttentionShape &s, int64_t end) {
  const int64_t columns = keysOf(s);
  if (!s.causal)
    return columns;
  const int64_t step = (columns + 16 * attentionBlockRows - 1) /
                       (16 * attentionBlockRows) * attentionBlockRows;
  return std::min(columns, (end + step - 1) / step * step);
}

std::vector<Block>
BFloat16Attention::makeBlocks(const AttentionShape &s) const {
  using Product = BFloat16Product;
  const ElementType bf16 = ElementType::BF16;
  std::vector<Block> blocks;
  const Block *like = nullptr;
  for (int64_t first = 0; first < s.rows; first += attentionBlockRows) {
    const int64_t m = std::min(attentionBlockRows, s.rows - first);
    const int64_t n = visibleFrom(s, first + m);
    if (like && like->rows == m && like->visible == n) {
      Block block = like->forThread();
      block.first = first;
      blocks.push_back(std::move(block));
    } else {
      const MatmulShape scores = {.m = m,
                                  .n = n,
                                  .k = s.depth,
                                  .transposeB = true,
                                  .alpha = s.scale,
                                  .type = bf16};
      MatmulShape dP = scores;
      dP.alpha = 1;
      const MatmulShape out = {.m = m, .n = s.depth, .k = n, .type = bf16};
      MatmulShape dQ = out;
      dQ.result = bf16;
      const MatmulShape dKeys = {.m = n,
                                 .n = s.depth,
                                 .k = m,
                                 .transposeA = true,
                                 .beta = 1,
                                 .type = bf16};
      blocks.push_back({first, m, n, Product(engine, scores),
                        Product(engine, out), Product(engine, dP),
                        Product(engine, dQ), Product(engine, dKeys)});
    }
    like = &blocks.back();
  }
  return blocks;
}

std::pair<Room, int64_t> BFloat16Attention::layOut(const AttentionShape &s,
                                                   char *from) const {
  Room room;
  int64_t bytes = 0;
  auto take = [&]<class T>(T *&part, int64_t count) {
    part = reinterpret_cast<T *>(from + bytes);
    bytes += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
  };
  const int64_t columns = keysOf(s), row = wholeVectors(columns);
  take(room.scores, attentionBlockRows * columns);
  take(room.gradients, attentionBlockRows * columns);
  take(room.shortScores, attentionBlockRows * columns);
  take(room.shortGradients, attentionBlockRows * columns);
  take(room.rows, 2 * row);
  take(room.scoreRow, row);
  take(room.gradientRow, row);
  take(room.out, attentionBlockRows * s.depth);
  take(room.dK, columns * s.depth);
  take(room.dV, columns * s.depth);
  take(room.productScratch, productBytes);
  return {room, bytes};
}

void BFloat16Attention::reserve(Rank &rank, int64_t bytes) {
  if (bytes <= threadBytes)
    return;
  const int64_t all = threads() * bytes;
  std::free(memory);
  memory = static_cast<char *>(std::aligned_alloc(64, all));
  if (!memory)
    fail("cannot allocate ", all, " bytes for attention blocks");
  // Padding is computed on too: it must hold numbers.
  std::memset(memory, 0, all);
  rank.countScratch(all - threads() * threadBytes);
  threadBytes = bytes;
}

void BFloat16Attention::prepare(Rank &rank, const AttentionShape &shape) {
  while (workers.empty() || (memory == nullptr && threads() < rank.threads()))
    workers.emplace_back(engine);
  const Key key = keyOf(shape);
  if (!workers[0].blocks.count(key)) {
    // Heads are shared out to threads, so products are of one thread each.
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    std::vector<Block> made = makeBlocks(shape);
    omp_set_num_threads(threads);
    for (Worker &worker : workers)
      for (const Block &block : made)
        worker.blocks[key].push_back(block.forThread());
  }
  for (const Block &block : workers[0].blocks[key])
    for (const BFloat16Product *product :
         {&block.scores, &block.out, &block.dP, &block.dQ, &block.dKeys})
      productBytes = std::max<int64_t>(productBytes, product->scratchBytes());
  reserve(rank, layOut(shape, nullptr).second);
}

std::vector<Block> &BFloat16Attention::blocks(const AttentionShape &shape,
                                              int64_t thread) {
  if (!workers.empty()) {
    const auto found = workers[thread].blocks.find(keyOf(shape));
    if (found != workers[thread].blocks.end())
      return found->second;
  }
  fail("attention of ", shape.rows, " rows was not set up");
}

/// Row `r` of a dense block, as whole vectors.
static float *wholeRow(float *block, int64_t r, int64_t visible, float *copy) {
  float *row = block + r * visible;
  if (visible % vectorLanes == 0)
    return row;
  return static_cast<float *>(std::memcpy(copy, row, visible * sizeof(float)));
}

namespace {

/// One head and the thread that works on it.
struct Head {
  const AttentionShape &shape;
  const AttentionRows rows;
  const dnnl::stream &stream;
  std::vector<Block> &blocks;
  const Room &room;
  const BFloat16 *q, *k, *v;
};

} // namespace

static void forwardHead(const Head &head, BFloat16 *o, RowStats *stats) {
  const int64_t depth = head.shape.depth;
  const Room &room = head.room;
  for (Block &block : head.blocks) {
    const int64_t visible = block.visible;
    block.scores.run(head.stream, head.q + block.first * depth, head.k,
                     room.scores, room.productScratch);
    float inverse[attentionBlockRows];
    for (int64_t r = 0; r < block.rows; ++r) {
      float *row = wholeRow(room.scores, r, visible, room.scoreRow);
      head.rows.mask(row, block.first + r, visible);
      stats[block.first + r] =
          head.rows.exponentiate(row, block.first + r, visible);
      inverse[r] = stats[block.first + r].inverse;
      narrow(row, visible, room.shortScores + r * visible);
    }
    block.out.run(head.stream, room.shortScores, head.v, room.out,
                  room.productScratch);
    for (int64_t r = 0; r < block.rows; ++r) {
      float *out = room.out + r * depth;
      for (int64_t d = 0; d < depth; ++d)
        out[d] *= inverse[r];
    }
    narrow(room.out, block.rows * depth, o + block.first * depth);
  }
}

/// Turns the block's scores and their gradients into what products read.
static void differentiateBlock(const Head &head, const Block &block,
                               const RowStats *stats) {
  const int64_t visible = block.visible;
  const Room &room = head.room;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t index = block.first + r;
    float *scores = wholeRow(room.scores, r, visible, room.scoreRow);
    float *gradients = wholeRow(room.gradients, r, visible, room.gradientRow);
    head.rows.mask(scores, index, visible);
    head.rows.differentiate(scores, gradients, index, visible, stats[index]);
    narrow(scores, visible, room.shortScores + r * visible);
    narrow(gradients, visible, room.shortGradients + r * visible);
  }
}

/// Adds to the room's dK and dV.
static void backwardHead(const Head &head, const BFloat16 *dO,
                         const RowStats *stats, BFloat16 *dq) {
  const int64_t depth = head.shape.depth;
  const Room &room = head.room;
  for (Block &block : head.blocks) {
    const int64_t at = block.first * depth;
    block.scores.run(head.stream, head.q + at, head.k, room.scores,
                     room.productScratch);
    block.dP.run(head.stream, dO + at, head.v, room.gradients,
                 room.productScratch);
    differentiateBlock(head, block, stats);
    block.dKeys.run(head.stream, room.shortScores, dO + at, room.dV,
                    room.productScratch);
    block.dQ.run(head.stream, room.shortGradients, head.k, dq + at,
                 room.productScratch);
    block.dKeys.run(head.stream, room.shortGradients, head.q + at, room.dK,
                    room.productScratch);
  }
}

void pipewright::runtime::prepareAttentionBFloat16(
    Rank &rank, const AttentionShape &shape) {
  if (shape.inputStride || shape.outputStride)
    fail("attention in bf16 on a CPU expects dense operands, heads before "
         "rows, but got strides of ",
         shape.inputStride, " and ", shape.outputStride,
         " elements, which it reads by in f32 only");
  rank.library<BFloat16Attention>().prepare(rank, shape);
}

/// Calls body(head, number, row offset, key offset) for every head of q; the
/// offsets are where the head's rows begin in q-like and k-like tensors.
template <class Body>
static void forHeads(Rank &rank, const AttentionShape &s, int64_t microBatch,
                     Buffer q, Buffer k, Buffer v, Buffer mask, Buffer dMask,
                     AttentionTurn turn, const Body &body) {
  BFloat16Attention &state = rank.library<BFloat16Attention>();
  const BFloat16 *qData = rank.data<BFloat16>(q);
  const BFloat16 *kData = rank.data<BFloat16>(k);
  const BFloat16 *vData = rank.data<BFloat16>(v);
  const float *maskData = rank.data<float>(mask);
  float *dMaskData = rank.data<float>(dMask);
  const int64_t rowsSize = s.rows * s.depth, keysSize = keysOf(s) * s.depth;
  // Throws here, where it is caught, if the shape was not set up.
  state.blocks(s, 0);
  forAttentionHeads(state.threads(), s, turn, [&](int64_t n, int64_t thread) {
    const Room room = state.room(s, thread);
    const int64_t rowsAt = n * rowsSize;
    const int64_t keysAt = n / s.group() * keysSize;
    const Head head = {
        s,
        AttentionRows(rank, s, microBatch, n, maskData, dMaskData, room.rows),
        state.worker(thread).stream,
        state.blocks(s, thread),
        room,
        qData + rowsAt,
        kData + keysAt,
        vData + keysAt};
    body(head, n, rowsAt, keysAt);
  });
  rank.poll();
}

void pipewright::runtime::attentionBFloat16(Rank &rank, const AttentionShape &s,
                                            int64_t microBatch, Buffer q,
                                            Buffer k, Buffer v, Buffer mask,
                                            Buffer o, Buffer stats) {
  BFloat16 *out = rank.data<BFloat16>(o);
  RowStats *rows = rank.data<RowStats>(stats);
  forHeads(rank, s, microBatch, q, k, v, mask, Buffer(), {1, 1},
           [&](const Head &head, int64_t n, int64_t at, int64_t) {
             forwardHead(head, out + at, rows + n * s.rows);
           });
}

void pipewright::runtime::attentionBackwardBFloat16(
    Rank &rank, const AttentionShape &s, int64_t microBatch, Buffer dO,
    Buffer q, Buffer k, Buffer v, Buffer stats, Buffer mask, Buffer dq,
    Buffer dk, Buffer dv, Buffer dMask) {
  const BFloat16 *dOut = rank.data<BFloat16>(dO);
  const RowStats *rows = rank.data<RowStats>(stats);
  BFloat16 *dqData = rank.data<BFloat16>(dq);
  BFloat16 *dkData = rank.data<BFloat16>(dk);
  BFloat16 *dvData = rank.data<BFloat16>(dv);
  clearMaskGradient(rank, s, dMask);
  const int64_t keys = keysOf(s) * s.depth;
  forHeads(rank, s, microBatch, q, k, v, mask, dMask, backwardTurn(s),
           [&](const Head &head, int64_t n, int64_t rowsAt, int64_t keysAt) {
             const Room &room = head.room;
             if (n % s.group() == 0) {
               std::memset(room.dK, 0, keys * sizeof(float));
               std::memset(room.dV, 0, keys * sizeof(float));
             }
             backwardHead(head, dOut + rowsAt, rows + n * s.rows,
                          dqData + rowsAt);
             if ((n + 1) % s.group() == 0) {
               narrow(room.dK, keys, dkData + keysAt);
               narrow(room.dV, keys, dvData + keysAt);
             }
           });
}
