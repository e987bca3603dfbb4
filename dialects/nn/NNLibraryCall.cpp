//===- NNLibraryCall.cpp - What an op asks of the runtime -----------------===//
//
// See NNLibraryCall.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLibraryCall.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"

using namespace mlir;
using namespace pipewright;

runtime::ElementType nn::elementTypeOf(Value value) {
  return tensorOf(value).getElementType().isBF16() ? runtime::ElementType::BF16
                                                   : runtime::ElementType::F32;
}

StringRef nn::weightBehind(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>())
    value = view->getOperand(0);
  auto parameter = value.getDefiningOp<ParameterOp>();
  return parameter ? parameter.getWeight() : StringRef();
}
