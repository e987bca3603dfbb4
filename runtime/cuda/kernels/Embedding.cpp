//===- Embedding.cpp - Rows of a table on the GPU -------------------------===//

#include "runtime/calls/Embedding.h"
#include "runtime/calls/Memory.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/kernels/Builtins.h"

using namespace pipewright::runtime;

/// What the sort of occurrences needs, in elements of 32 bits.
static int64_t sortWords(const EmbeddingShape &shape) {
  return shape.rows + (shape.rows + 1) + 2 * shape.count;
}

void pipewright::runtime::prepareEmbeddingBackward(
    DeviceRank &rank, const EmbeddingShape &shape) {
  kernelSize(shape.rows, "a table of embeddings");
  kernelSize(shape.count, "an embedding's input");
  prepareBuiltin(rank, "embedding_count");
  rank.reserveWorkspace(4 * sortWords(shape));
}

template <>
void pipewright::runtime::embedding(DeviceRank &rank,
                                    const EmbeddingShape &shape, Buffer table,
                                    Buffer indices, Buffer y) {
  const MeasuredCall measured(rank, [&] {
    return CallCost{"embedding", 2.0 * static_cast<double>(y.bytes)};
  });
  const char *from = rank.device<char>(table);
  const int64_t *index = rank.device<int64_t>(indices);
  char *to = rank.device<char>(y);
  const int64_t rowBytes = shape.width * byteWidth(shape.type);
  // Rows are only moved: whatever unit fits.
  int64_t unit = 16;
  while (rowBytes % unit || !alignedTo(unit, from, to))
    unit = unit == 16 ? 4 : 2;
  const int32_t unitsPerRow =
      kernelSize(rowBytes / unit, "a row of embeddings");
  launchBuiltinThreads(rank, "embedding_" + std::to_string(unit),
                       shape.count * unitsPerRow, from, index, to, shape.count,
                       unitsPerRow, shape.rows, rank.indexFault());
}

template <>
void pipewright::runtime::embeddingBackward(DeviceRank &rank,
                                            const EmbeddingShape &shape,
                                            Buffer dy, Buffer indices,
                                            Buffer dtable, bool accumulate) {
  const MeasuredCall measured(rank, [&] {
    const int64_t bytes = dy.bytes + (accumulate ? 2 : 1) * dtable.bytes;
    return CallCost{"embedding gradient", static_cast<double>(bytes)};
  });
  const char *from = rank.device<char>(dy);
  const int64_t *index = rank.device<int64_t>(indices);
  float *to = rank.device<float>(dtable);
  const int32_t rows = kernelSize(shape.rows, "a table of embeddings");
  const int32_t count = kernelSize(shape.count, "an embedding's input");
  const int32_t columns = kernelSize(shape.width, "a row of embeddings");

  int32_t *counts =
      static_cast<int32_t *>(rank.workspace(4 * sortWords(shape)));
  int32_t *starts = counts + rows;
  int32_t *unordered = starts + rows + 1;
  int32_t *ordered = unordered + count;
  PIPEWRIGHT_CUDA(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(counts), 0,
                                   rows, rank.computeStream()));
  launchBuiltinThreads(rank, "embedding_count", count, index, counts, count,
                       rows);
  launchBuiltin(rank, "embedding_scan", 1, 1024, counts, starts, rows);
  launchBuiltinThreads(rank, "embedding_place", count, index, counts, starts,
                       unordered, count, rows);
  launchBuiltinThreads(rank, "embedding_rank", count, index, starts, unordered,
                       ordered, count, rows);

  // Four columns for each lane where rows begin at whole packs.
  const bool packed = columns % 4 == 0 && alignedTo(16, to) &&
                      alignedTo(4 * byteWidth(shape.type), from);
  const int32_t columnsPerWarp = packed ? 128 : 32;
  const int32_t warpsPerRow = (columns + columnsPerWarp - 1) / columnsPerWarp;
  launchBuiltinThreads(
      rank,
      std::string(packed ? "embedding_sum_packed" : "embedding_sum") +
          typeSuffix(shape.type),
      int64_t{32} * rows * warpsPerRow, from, starts, ordered, to, rows,
      columns, warpsPerRow, static_cast<int32_t>(shape.paddingRow),
      static_cast<int32_t>(!accumulate));
}
