//===- NNDialect.cpp - The nn dialect -------------------------------------===//
//
// Registration, and the one place where the generated definitions are
// compiled.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pipewright::nn;

#include "dialects/nn/NNDialect.cpp.inc"
#include "dialects/nn/NNEnums.cpp.inc"
#include "dialects/nn/NNInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NNAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/nn/NNOps.cpp.inc"

namespace {
/// Instantiated one by one, so that an error names the op.
template <typename OpTy>
struct Facts {
  static_assert(sayWhatTheyAre<OpTy>,
                "an op is compiled, calls the runtime, is a view or is known "
                "by its name; all but the last say what they cost and in which "
                "precision they compute");
};
template <typename... OpTys>
struct FactsOfAll : Facts<OpTys>... {};

template struct FactsOfAll<
#define GET_OP_LIST
#include "dialects/nn/NNOps.cpp.inc"
    >;
} // namespace

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/nn/NNAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/NNOps.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location location) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  // A fold whose result is too large to be text stays what it was.
  if (!elements.isSplat() &&
      elements.getNumElements() > ConstantOp::kMaxElements)
    return nullptr;
  return ConstantOp::create(builder, location, elements);
}
