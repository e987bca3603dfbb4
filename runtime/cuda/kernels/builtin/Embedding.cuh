//===- Embedding.cuh - Rows of a table and their gradients -----*- C++ -*-===//
//
// The gradient of a table row is the sum over the row's occurrences in
// ascending order, as on the CPU: the same bits. Occurrences are brought into
// that order by a counting sort:
//
//   count   how often each row occurs                (integer atomics)
//   scan    where each row's list begins
//   place   occurrences into their lists, unordered  (integer atomics)
//   rank    each occurrence counts the smaller ones in its list: its place
//   sum     one warp for each row and 128 columns adds the occurrences up
//
// All but `rank` is linear in the number of occurrences. `rank` is quadratic
// in the longest list, but all threads of a warp that share a row read the
// same words. A radix sort would be linear in three times as many launches.
//
// Rows that the table has not count as row 0 everywhere. The lookup notes them,
// and no step has a gradient without its lookup.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/builtin/Indices.cuh"
#include "runtime/cuda/kernels/builtin/Prelude.cuh"

/// Sixteen bytes that are moved by one instruction.
typedef uint32_t FourWords __attribute__((ext_vector_type(4)));

/// Copies rows in units of 16, 4 or 2 bytes; `unitsPerRow` of them make a row.
template <class Unit>
__device__ void gatherRows(const Unit *table, const int64_t *indices, Unit *y,
                           int64_t count, int32_t unitsPerRow, int64_t rows,
                           IndexFault *fault) {
  const int64_t i = globalIndex();
  if (i >= count * unitsPerRow)
    return;
  const int64_t row = i / unitsPerRow;
  const int64_t unit = i - row * unitsPerRow;
  const int64_t index = indices[row];
  if (!isInside(index, rows))
    return noteFault(fault, IndexFault::Row, index, rows);
  y[i] = table[index * unitsPerRow + unit];
}

extern "C" __global__ void embedding_16(const FourWords *table,
                                        const int64_t *indices, FourWords *y,
                                        int64_t count, int32_t unitsPerRow,
                                        int64_t rows, IndexFault *fault) {
  gatherRows(table, indices, y, count, unitsPerRow, rows, fault);
}
extern "C" __global__ void embedding_4(const uint32_t *table,
                                       const int64_t *indices, uint32_t *y,
                                       int64_t count, int32_t unitsPerRow,
                                       int64_t rows, IndexFault *fault) {
  gatherRows(table, indices, y, count, unitsPerRow, rows, fault);
}
extern "C" __global__ void embedding_2(const uint16_t *table,
                                       const int64_t *indices, uint16_t *y,
                                       int64_t count, int32_t unitsPerRow,
                                       int64_t rows, IndexFault *fault) {
  gatherRows(table, indices, y, count, unitsPerRow, rows, fault);
}

/// counts[row] += 1 for each occurrence; zero before.
extern "C" __global__ void embedding_count(const int64_t *indices,
                                           int32_t *counts, int32_t count,
                                           int32_t rows) {
  const int64_t i = globalIndex();
  if (i < count)
    __nvvm_atom_add_gen_i(&counts[rowInside(indices[i], rows)], 1);
}

/// starts[row] = sum of the counts before it, starts[rows] = all. One block
/// of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
    embedding_scan(const int32_t *counts, int32_t *starts, int32_t rows) {
  constexpr int threads = 1024;
  __shared__ int32_t sums[threads];
  const int32_t thread = threadIndex();
  int32_t before = 0;
  for (int32_t base = 0; base < rows; base += threads) {
    const int32_t row = base + thread;
    const int32_t own = row < rows ? counts[row] : 0;
    sums[thread] = own;
    syncBlock();
    // After the turn with `distance`, sums[i] covers 2 * distance rows.
    for (int32_t distance = 1; distance < threads; distance *= 2) {
      const int32_t other = thread >= distance ? sums[thread - distance] : 0;
      syncBlock();
      sums[thread] += other;
      syncBlock();
    }
    if (row < rows)
      starts[row] = before + sums[thread] - own;
    before += sums[threads - 1];
    syncBlock();
  }
  if (thread == 0)
    starts[rows] = before;
}

/// Every occurrence into its row's list, in any order. Leaves counts at zero.
extern "C" __global__ void
embedding_place(const int64_t *indices, int32_t *counts, const int32_t *starts,
                int32_t *unordered, int32_t count, int32_t rows) {
  const int64_t i = globalIndex();
  if (i >= count)
    return;
  const int64_t row = rowInside(indices[i], rows);
  const int32_t left = __nvvm_atom_add_gen_i(&counts[row], -1);
  unordered[starts[row] + left - 1] = static_cast<int32_t>(i);
}

/// Every occurrence to where it belongs in its list.
extern "C" __global__ void embedding_rank(const int64_t *indices,
                                          const int32_t *starts,
                                          const int32_t *unordered,
                                          int32_t *ordered, int32_t count,
                                          int32_t rows) {
  const int64_t at = globalIndex();
  if (at >= count)
    return;
  const int32_t own = unordered[at];
  const int64_t row = rowInside(indices[own], rows);
  const int32_t begin = starts[row], end = starts[row + 1];
  int32_t smaller = 0;
  for (int32_t i = begin; i < end; ++i)
    smaller += unordered[i] < own;
  ordered[begin + smaller] = own;
}

/// dtable[row] += sum of dy over the row's list (or = where `overwrite`), which
/// is empty for `paddingRow`. One warp has `width` columns for each lane;
/// `warpsPerRow` warps share a row.
template <class T, int width>
__device__ void sumRows(const T *dy, const int32_t *starts,
                        const int32_t *ordered, float *dtable, int32_t rows,
                        int32_t columns, int32_t warpsPerRow,
                        int32_t paddingRow, int32_t overwrite) {
  const int64_t warp = globalIndex() / 32;
  const int64_t row = warp / warpsPerRow;
  const int32_t lane = threadIndex() % 32;
  const int64_t part = warp - row * warpsPerRow;
  const int64_t column = (part * 32 + lane) * width;
  if (row >= rows || column >= columns)
    return;
  const int32_t begin = starts[row];
  const int32_t end = row == paddingRow ? begin : starts[row + 1];
  if (begin == end && !overwrite)
    return;
  float *to = dtable + row * columns + column;
  Pack<float, width> sum = {};
  if (!overwrite)
    sum = loadPack<float, width>(to);
  // Loads of several occurrences are under way at once; sums stay in order.
#pragma unroll 4
  for (int32_t i = begin; i < end; ++i) {
    const auto values = loadPack<T, width>(
        dy + static_cast<int64_t>(ordered[i]) * columns + column);
    for (int j = 0; j < width; ++j)
      sum.at[j] += toFloat(values.at[j]);
  }
  storePack<float, width>(to, sum);
}

extern "C" __global__ void
embedding_sum_packed_f32(const float *dy, const int32_t *starts,
                         const int32_t *ordered, float *dtable, int32_t rows,
                         int32_t columns, int32_t warpsPerRow,
                         int32_t paddingRow, int32_t overwrite) {
  sumRows<float, 4>(dy, starts, ordered, dtable, rows, columns, warpsPerRow,
                    paddingRow, overwrite);
}
extern "C" __global__ void
embedding_sum_f32(const float *dy, const int32_t *starts,
                  const int32_t *ordered, float *dtable, int32_t rows,
                  int32_t columns, int32_t warpsPerRow, int32_t paddingRow,
                  int32_t overwrite) {
  sumRows<float, 1>(dy, starts, ordered, dtable, rows, columns, warpsPerRow,
                    paddingRow, overwrite);
}
extern "C" __global__ void
embedding_sum_packed_bf16(const Bf16 *dy, const int32_t *starts,
                          const int32_t *ordered, float *dtable, int32_t rows,
                          int32_t columns, int32_t warpsPerRow,
                          int32_t paddingRow, int32_t overwrite) {
  sumRows<Bf16, 4>(dy, starts, ordered, dtable, rows, columns, warpsPerRow,
                   paddingRow, overwrite);
}
extern "C" __global__ void
embedding_sum_bf16(const Bf16 *dy, const int32_t *starts,
                   const int32_t *ordered, float *dtable, int32_t rows,
                   int32_t columns, int32_t warpsPerRow, int32_t paddingRow,
                   int32_t overwrite) {
  sumRows<Bf16, 1>(dy, starts, ordered, dtable, rows, columns, warpsPerRow,
                   paddingRow, overwrite);
}
