//===- Attention.cpp - Attention whose operands are in one tensor ---------===//

#include "runtime/calls/Attention.h"
#include "runtime/core/Error.h"

using namespace pipewright::runtime;

AttentionThirds pipewright::runtime::thirdsOf(const AttentionShape &s,
                                              Buffer packed) {
  const int64_t third = s.heads * s.depth * byteWidth(s.type);
  if (s.inputStride != 3 * s.heads * s.depth || s.columns)
    fail("packed attention expects rows of 3 x ", s.heads, " x ", s.depth,
         " elements and as many keys as rows, but got rows of ", s.inputStride);
  const int64_t bytes = packed.bytes - 2 * third;
  return {packed.at(0, bytes), packed.at(third, bytes),
          packed.at(2 * third, bytes)};
}
