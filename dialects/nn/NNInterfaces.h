//===- NNInterfaces.h - Interfaces of nn ops --------------------*- C++ -*-===//
//
// What passes may ask of an nn op without knowing which op it is.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H
#define PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H

#include "dialects/nn/NNFacts.h"
#include "dialects/nn/NNLibraryCall.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"

namespace pipewright::nn {

class GradientBuilder;
using Gradients = llvm::SmallVector<mlir::Value, 3>;

} // namespace pipewright::nn

#include "dialects/nn/NNInterfaces.h.inc"

namespace pipewright::nn {

/// Whether all of these ops say which way they are lowered, what they cost and
/// what they compute in.
template <typename... OpTys>
constexpr bool sayWhatTheyAre =
    ((OpTys::template hasTrait<KnownByName>() +
              OpTys::template hasTrait<KernelOpInterface::Trait>() +
              OpTys::template hasTrait<LibraryOpInterface::Trait>() +
              OpTys::template hasTrait<ViewOpInterface::Trait>() ==
          1 &&
      (OpTys::template hasTrait<KnownByName>() ||
       (OpTys::template hasTrait<CostOpInterface::Trait>() &&
        OpTys::template hasTrait<PrecisionOpInterface::Trait>()))) &&
     ...);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H
