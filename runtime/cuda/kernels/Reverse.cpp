//===- Reverse.cpp - Rows in reverse order on the GPU ---------------------===//
//
// A copy for each row.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Reverse.h"
#include "runtime/calls/Memory.h"
#include "runtime/cuda/DeviceRank.h"

using namespace pipewright::runtime;

template <>
void pipewright::runtime::reverseRows(DeviceRank &rank, const ReverseShape &s,
                                      Buffer x, Buffer y) {
  const int64_t bytes = s.width * byteWidth(s.type);
  for (int64_t i = 0; i < s.rows; ++i)
    copy(rank, x.at((s.rows - 1 - i) * bytes, bytes), y.at(i * bytes, bytes));
}
