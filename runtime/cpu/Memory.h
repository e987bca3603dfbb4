//===- Memory.h - Filling, copying and adding buffers ----------*- C++ -*-===//
//
// The few moves of data that need no compiled kernel.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_MEMORY_H
#define PIPEWRIGHT_RUNTIME_CPU_MEMORY_H

#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

void zero(Rank &rank, Buffer buffer);
/// All of `source`, to the begin of `destination`.
void copy(Rank &rank, Buffer source, Buffer destination);
/// The values of a table of the program.
void setValues(Rank &rank, const void *values, Buffer destination);
/// f32: destination += source.
void accumulate(Rank &rank, Buffer source, Buffer destination);
/// f32: every element becomes `value`.
void fill(Rank &rank, float value, Buffer buffer);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_MEMORY_H
