//===- NNWeightNames.h - What files call a weight ---------------*- C++ -*-===//
//
// A weight's symbol is its name in files, unless another symbol of the module
// has to have that name: `nn.name` then says it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H
#define PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H

#include "dialects/nn/NNOps.h"

namespace pipewright::nn {

inline constexpr llvm::StringLiteral kFileName = "nn.name";

inline void setFileName(WeightOp weight, llvm::StringRef name) {
  weight->setAttr(kFileName, mlir::StringAttr::get(weight.getContext(), name));
}

inline llvm::StringRef fileNameOf(WeightOp weight) {
  auto name = weight->getAttrOfType<mlir::StringAttr>(kFileName);
  return name ? name.getValue() : weight.getSymName();
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H
