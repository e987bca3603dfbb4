//===- Embedding.cpp - Rows of a table ------------------------------------===//

#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Memory.h"
#include "runtime/kernels/Parallel.h"

#include <cstring>

using namespace pipewright::runtime;

void pipewright::runtime::embedding(Rank &rank, const EmbeddingShape &shape,
                                    Buffer table, Buffer indices, Buffer y) {
  const float *rows = rank.data<float>(table);
  const int64_t *index = rank.data<int64_t>(indices);
  float *to = rank.data<float>(y);
  const int64_t width = shape.width;
  parallelFor(threadsFor(rank.threads(), shape.count * width), shape.count,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = begin; i < end; ++i)
                  std::memcpy(to + i * width, rows + index[i] * width,
                              width * sizeof(float));
              });
  rank.poll();
}

void pipewright::runtime::embeddingBackward(Rank &rank,
                                            const EmbeddingShape &shape,
                                            Buffer dy, Buffer indices,
                                            Buffer dtable, bool accumulate) {
  if (!accumulate)
    zero(rank, dtable);
  const float *from = rank.data<float>(dy);
  const int64_t *index = rank.data<int64_t>(indices);
  float *rows = rank.data<float>(dtable);
  const int64_t width = shape.width;
  // Threads share out the columns: each row is summed in one fixed order.
  parallelFor(threadsFor(rank.threads(), shape.count * width), width,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = 0; i < shape.count; ++i) {
                  float *to = rows + index[i] * width;
                  const float *row = from + i * width;
                  for (int64_t c = begin; c < end; ++c)
                    to[c] += row[c];
                }
              });
  rank.poll();
}
