//===- NNOps.h - The ops of the nn dialect ----------------------*- C++ -*-===//
//
// All ops of the nn dialect, the resources that their effects are on, and the
// few functions that everyone who builds or reads nn ops needs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNOPS_H
#define PIPEWRIGHT_DIALECTS_NN_NNOPS_H

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NNInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace pipewright::nn {

/// The weights whose role is `state`.
struct StateResource : public mlir::SideEffects::Resource::Base<StateResource> {
  llvm::StringRef getName() final { return "nn.state"; }
};

/// The gradient accumulators of the weights whose role is `parameter`.
struct GradientResource
    : public mlir::SideEffects::Resource::Base<GradientResource> {
  llvm::StringRef getName() final { return "nn.gradient"; }
};

} // namespace pipewright::nn

#define GET_OP_CLASSES
#include "dialects/nn/NNOps.h.inc"

namespace pipewright::nn {

/// Finds the weight that `name` means at `from`: symbol tables are searched
/// from the inside out, because stages and ranks have tables of their own.
/// Returns null when there is none.
WeightOp lookupWeight(mlir::Operation *from, mlir::FlatSymbolRefAttr name,
                      mlir::SymbolTableCollection &symbolTables);

/// Builds an op whose result types are inferred, as `OpTy::create` does, but
/// from operands that may not fit together: then it reports a diagnostic at
/// `location` and fails, where `create` would abort. For importers. All of the
/// op's mandatory attributes must be there.
template <typename OpTy>
mlir::FailureOr<OpTy>
createInferred(mlir::OpBuilder &builder, mlir::Location location,
               mlir::ValueRange operands,
               llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
  mlir::OperationState state(location, OpTy::getOperationName());
  state.addOperands(operands);
  auto dictionary = builder.getDictionaryAttr(attributes);
  using Properties = typename OpTy::template InferredProperties<OpTy>;
  if constexpr (!std::is_same_v<Properties, mlir::EmptyProperties>) {
    if (mlir::failed(OpTy::setPropertiesFromAttr(
            state.getOrAddProperties<Properties>(), dictionary,
            [&] { return mlir::emitError(location); })))
      return mlir::failure();
  }
  if (mlir::failed(OpTy::inferReturnTypes(
          builder.getContext(), location, operands, dictionary,
          state.getRawProperties(), {}, state.types)))
    return mlir::failure();
  return mlir::cast<OpTy>(builder.create(state));
}

/// The shape that both broadcast to, or failure.
mlir::FailureOr<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

/// A constant splat of `value` with the given type.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location location,
                        mlir::RankedTensorType type, double value);

/// A constant scalar `tensor<f32>`, which broadcasts against anything.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location location,
                         double value);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNOPS_H
