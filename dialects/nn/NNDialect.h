//===- NNDialect.h - The nn dialect -----------------------------*- C++ -*-===//
//
// The dialect, its enums and its attributes. The ops are in NNOps.h.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNDIALECT_H
#define PIPEWRIGHT_DIALECTS_NN_NNDIALECT_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/nn/OptimizerTable.h"

#include "dialects/nn/NNDialect.h.inc"
#include "dialects/nn/NNEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NNAttributes.h.inc"

#endif // PIPEWRIGHT_DIALECTS_NN_NNDIALECT_H
