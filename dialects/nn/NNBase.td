//===- NNBase.td - The nn dialect and its types ------------*- tablegen -*-===//
//
// The dialect itself, the tensor types that its ops take, and the base class
// of every op. Families of ops live in files of their own.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNBASE_TD
#define PIPEWRIGHT_DIALECTS_NN_NNBASE_TD

include "dialects/nn/NNInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::pipewright::nn";
  let summary = "Tensors by value: what a neural network computes";
  let description = [{
    Statically shaped tensors with value semantics and no more ops than
    training needs. ONNX's variants of an op are folded to one form on import.
    Weights are symbols backed by a side file; only shape-like constants stand
    in the text. README.md beside this file has the rationale.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class NN_TensorOf<list<Type> elementTypes, string summary>
    : RankedTensorOf<elementTypes, [HasStaticShapePred], summary>;

def NN_Tensor
    : NN_TensorOf<[F32, BF16, I64, I1, I8], "statically shaped tensor">;
/// Computed in f32 and rounded once, to the nearest and ties to even, where
/// the result is bf16: inside of a kernel, too.
def NN_FloatTensor
    : NN_TensorOf<[F32, BF16], "statically shaped tensor">;
/// Statistics, losses, masks, gradients of weights, what optimizers work on.
def NN_F32Tensor
    : NN_TensorOf<[F32], "statically shaped tensor">;
def NN_NumericTensor
    : NN_TensorOf<[F32, BF16, I64], "statically shaped tensor">;
def NN_IndexTensor
    : NN_TensorOf<[I64], "statically shaped tensor">;
def NN_BoolTensor
    : NN_TensorOf<[I1], "statically shaped tensor">;
def NN_WindowTensor
    : NN_TensorOf<[I8], "statically shaped tensor">;

/// Splats of any size are one element long, so dense text stays small.
def NN_DenseElementsAttr
    : ElementsAttrBase<CPred<"::llvm::isa<::mlir::DenseElementsAttr>($_self)">,
                       "dense elements"> {
  let storageType = [{ ::mlir::DenseElementsAttr }];
  let returnType = [{ ::mlir::DenseElementsAttr }];
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

/// The weights whose role is `state` (running statistics).
def NN_StateResource : Resource<"::pipewright::nn::StateResource">;

/// The gradient accumulators of the weights whose role is `parameter`.
def NN_GradientResource : Resource<"::pipewright::nn::GradientResource">;

//===----------------------------------------------------------------------===//
// Op base classes
//===----------------------------------------------------------------------===//

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

/// An op without effects whose result types follow from its operands.
class NN_InferredOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor], traits)>;

/// What every op that takes part in training declares.
defvar NN_Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar NN_Cost = DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>;
/// What the runtime computes.
defvar NN_Library = DeclareOpInterfaceMethods<LibraryOpInterface>;

#endif // PIPEWRIGHT_DIALECTS_NN_NNBASE_TD
