//===- Runtime.h - All that a generated program calls ----------*- C++ -*-===//
//
// The one include of generated code.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RUNTIME_H
#define PIPEWRIGHT_RUNTIME_RUNTIME_H

#include "runtime/core/Program.h"
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/Convolution.h"
#include "runtime/cpu/Dropout.h"
#include "runtime/cpu/Embedding.h"
#include "runtime/cpu/Matmul.h"
#include "runtime/cpu/Memory.h"
#include "runtime/cpu/Pooling.h"
#include "runtime/rank/Rank.h"

#endif // PIPEWRIGHT_RUNTIME_RUNTIME_H
