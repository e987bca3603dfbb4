//===- Dialects.h - Our dialects, which every pass needs -------*- C++ -*-===//
//
// What TableGen makes of their ops is larger than most of our files.
//
//===----------------------------------------------------------------------===//

#include "cmake/pch/Mlir.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
