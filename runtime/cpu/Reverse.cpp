//===- Reverse.cpp - Rows in reverse order --------------------------------===//

#include "runtime/calls/Reverse.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/rank/Rank.h"

#include <cstring>

using namespace pipewright::runtime;

template <>
void pipewright::runtime::reverseRows(Rank &rank, const ReverseShape &s,
                                      Buffer x, Buffer y) {
  const char *from = rank.data<char>(x);
  char *to = rank.data<char>(y);
  const int64_t bytes = s.width * byteWidth(s.type);
  parallelFor(threadsFor(rank.threads(), s.rows * bytes / 4), s.rows,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = begin; i < end; ++i)
                  std::memcpy(to + i * bytes, from + (s.rows - 1 - i) * bytes,
                              bytes);
              });
  rank.poll();
}
