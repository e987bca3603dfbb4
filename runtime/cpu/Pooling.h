//===- Pooling.h - Max and average pooling ---------------------*- C++ -*-===//
//
// Own loops: memory-bound, and the window position is an i8 of plain layout.
// Images are NCHW, or with the channels last NHWC.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_POOLING_H
#define PIPEWRIGHT_RUNTIME_CPU_POOLING_H

#include "runtime/calls/Pooling.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// `window` gets row * kw + column inside the window of the first maximum, one
/// unsigned byte per output: at most 256 positions. May be absent.
void maxPool(Rank &rank, const PoolingShape &shape, Buffer x, Buffer y,
             Buffer window);
void maxPoolBackward(Rank &rank, const PoolingShape &shape, Buffer dy,
                     Buffer window, Buffer dx);
void averagePool(Rank &rank, const PoolingShape &shape, Buffer x, Buffer y);
void averagePoolBackward(Rank &rank, const PoolingShape &shape, Buffer dy,
                         Buffer dx);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_POOLING_H
