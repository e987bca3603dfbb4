//===- Memory.h - Filling, copying and adding buffers ----------*- C++ -*-===//
//
// The few moves of data that need no compiled kernel.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_MEMORY_H
#define PIPEWRIGHT_RUNTIME_CALLS_MEMORY_H

#include "runtime/core/Arena.h"

namespace pipewright::runtime {

template <class AnyRank>
void zero(AnyRank &rank, Buffer buffer);
/// All of `source`, to the start of `destination`; they may not overlap.
template <class AnyRank>
void copy(AnyRank &rank, Buffer source, Buffer destination);
/// The values of a table of the program. On a GPU they travel with the
/// launches, so the table may be anywhere; meant for small ones.
template <class AnyRank>
void setValues(AnyRank &rank, const void *values, Buffer destination);
/// f32: destination += source.
template <class AnyRank>
void accumulate(AnyRank &rank, Buffer source, Buffer destination);
/// f32: every element becomes `value`.
template <class AnyRank>
void fill(AnyRank &rank, float value, Buffer buffer);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_MEMORY_H
