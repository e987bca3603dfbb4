//===- CallDialect.cpp - The call dialect ---------------------------------===//
//
// Registration, and the one place where the generated definitions are
// compiled.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNInference.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pipewright::call;

#include "dialects/call/CallDialect.cpp.inc"
#include "dialects/call/CallEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/call/CallAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/call/CallOps.cpp.inc"

static_assert(pipewright::nn::sayWhatTheyAre<
#define GET_OP_LIST
#include "dialects/call/CallOps.cpp.inc"
                  >,
              "every op says what it costs and in which precision it computes");

void CallDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/call/CallAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/call/CallOps.cpp.inc"
      >();
}
