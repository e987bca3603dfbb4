//===- Embedding.cpp - Rows of a table ------------------------------------===//

#include "runtime/calls/Embedding.h"
#include "runtime/calls/Indices.h"
#include "runtime/calls/Memory.h"
#include "runtime/core/BFloat16.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"

#include <cstring>

using namespace pipewright::runtime;

static void checkIndices(const int64_t *index, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i)
    if (index[i] < 0 || index[i] >= rows)
      failRow(index[i], rows);
}

template <>
void pipewright::runtime::embedding(Rank &rank, const EmbeddingShape &shape,
                                    Buffer table, Buffer indices, Buffer y) {
  const char *rows = rank.data<char>(table);
  const int64_t *index = rank.data<int64_t>(indices);
  char *to = rank.data<char>(y);
  const int64_t bytes = shape.width * byteWidth(shape.type);
  checkIndices(index, shape.count, shape.rows);
  parallelFor(threadsFor(rank.threads(), shape.count * bytes / 4), shape.count,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = begin; i < end; ++i)
                  std::memcpy(to + i * bytes, rows + index[i] * bytes, bytes);
              });
  rank.poll();
}

template <class Element>
static void addRows(Rank &rank, const EmbeddingShape &shape,
                    const Element *from, const int64_t *index, float *rows) {
  const int64_t width = shape.width;
  // Threads share out the columns: each row is summed in one fixed order.
  parallelFor(threadsFor(rank.threads(), shape.count * width), width,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = 0; i < shape.count; ++i) {
                  if (index[i] == shape.paddingRow)
                    continue;
                  float *to = rows + index[i] * width;
                  const Element *row = from + i * width;
                  for (int64_t c = begin; c < end; ++c)
                    to[c] += widen(row[c]);
                }
              });
}

template <>
void pipewright::runtime::embeddingBackward(Rank &rank,
                                            const EmbeddingShape &shape,
                                            Buffer dy, Buffer indices,
                                            Buffer dtable, bool accumulate) {
  if (!accumulate)
    zero(rank, dtable);
  const int64_t *index = rank.data<int64_t>(indices);
  float *rows = rank.data<float>(dtable);
  if (shape.type == ElementType::BF16)
    addRows(rank, shape, rank.data<BFloat16>(dy), index, rows);
  else
    addRows(rank, shape, rank.data<float>(dy), index, rows);
  rank.poll();
}
