//===- Runtime.h - All that a generated program calls ----------*- C++ -*-===//
//
// The one include of generated code.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RUNTIME_H
#define PIPEWRIGHT_RUNTIME_RUNTIME_H

#include "runtime/core/Program.h"
#include "runtime/core/Rank.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Convolution.h"
#include "runtime/kernels/Dropout.h"
#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Memory.h"
#include "runtime/kernels/Pooling.h"

#endif // PIPEWRIGHT_RUNTIME_RUNTIME_H
