//===- Convolution.h - 2-D convolutions ------------------------*- C++ -*-===//
//
// Primitives, reorders and scratch are made in the rank's setUp and found by
// number in a step. Arguments are plain: NCHW and OIHW, or with the channels
// last NHWC and OHWI.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_CONVOLUTION_H
#define PIPEWRIGHT_RUNTIME_CPU_CONVOLUTION_H

#include "runtime/calls/Convolution.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// Called in setUp, once for each number and direction that a step uses.
/// Numbers are small, dense and chosen by the caller; all directions of one
/// number share one shape.
void prepareConvolutionForward(Rank &rank, int64_t number,
                               const ConvolutionShape &shape, bool hasBias);
void prepareConvolutionBackwardData(Rank &rank, int64_t number,
                                    const ConvolutionShape &shape);
void prepareConvolutionBackwardWeight(Rank &rank, int64_t number,
                                      const ConvolutionShape &shape);

/// `bias` has zero bytes where there is none.
void convolutionForward(Rank &rank, int64_t number, Buffer x, Buffer w,
                        Buffer bias, Buffer y);
void convolutionBackwardData(Rank &rank, int64_t number, Buffer dy, Buffer w,
                             Buffer dx);
/// Adds to dw when `accumulate`, overwrites it otherwise.
void convolutionBackwardWeight(Rank &rank, int64_t number, Buffer dy, Buffer x,
                               Buffer dw, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_CONVOLUTION_H
