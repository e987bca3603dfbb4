//===- Calls.h - All library calls -----------------------------*- C++ -*-===//
//
// Each call is declared once, as a template over the class of the rank. A
// target has an explicit specialization of it for its own class, which is not
// declared anywhere: a call that a target lacks is an error of the linker, and
// of tools/checks/calls. What one class alone has is a plain function for it;
// what is made of other calls alone is defined for all of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_CALLS_H
#define PIPEWRIGHT_RUNTIME_CALLS_CALLS_H

#include "runtime/calls/Attention.h"
#include "runtime/calls/Convolution.h"
#include "runtime/calls/Dropout.h"
#include "runtime/calls/Embedding.h"
#include "runtime/calls/Labels.h"
#include "runtime/calls/Matmul.h"
#include "runtime/calls/Memory.h"
#include "runtime/calls/Orthogonalize.h"
#include "runtime/calls/Pooling.h"

#endif // PIPEWRIGHT_RUNTIME_CALLS_CALLS_H
