//===- NNWeightNames.h - What files call a weight ---------------*- C++ -*-===//
//
// A weight's symbol is its name in files, unless another symbol of the module
// has to have that name: `nn.name` then says it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H
#define PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H

#include "dialects/nn/NNAttributeNames.h"
#include "dialects/nn/NNOps.h"

namespace pipewright::nn {

/// A name that files of weights keep for themselves.
inline constexpr llvm::StringLiteral kMetadataName = "__metadata__";

/// Whether passes will make a symbol of this name: a stage, or the module of
/// all kernels.
inline bool isKeptForPasses(llvm::StringRef symbol) {
  unsigned stage;
  return symbol == "kernels" ||
         (symbol.consume_front("s") && !symbol.getAsInteger(10, stage));
}

inline void setFileName(WeightOp weight, llvm::StringRef name) {
  weight->setAttr(kName, mlir::StringAttr::get(weight.getContext(), name));
}

inline llvm::StringRef fileNameOf(WeightOp weight) {
  auto name = weight->getAttrOfType<mlir::StringAttr>(kName);
  return name ? name.getValue() : weight.getSymName();
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNWEIGHTNAMES_H
