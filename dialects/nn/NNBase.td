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

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

/// What an op says in the `.cpp` file of its family.
defvar NN_Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar NN_Cost = DeclareOpInterfaceMethods<CostOpInterface>;
defvar NN_Kernel = DeclareOpInterfaceMethods<KernelOpInterface>;
defvar NN_Indexes = DeclareOpInterfaceMethods<IntegerOpInterface>;
defvar NN_Library = DeclareOpInterfaceMethods<LibraryOpInterface>;

/// A trait of NNFacts.h.
class NN_Fact<string name, string argument>
    : ParamNativeOpTrait<name, argument> {
  let cppNamespace = "::pipewright::nn";
}

/// A kernel op that computes each element of its result from one element of
/// each operand. `walk` is one of RowWalk: `Cheap`, `Costly` or `Leaf`.
class NN_Elementwise<string walk>
    : TraitList<[KernelOpInterface,
                 NN_Fact<"Elementwise", "RowWalk::" # walk>]>;

class NN_FlopsPerElement<int flops>
    : TraitList<[CostOpInterface,
                 NN_Fact<"FlopsPerElement", !cast<string>(flops)>]>;

/// All operands are wanted in one precision, an enumerator of PrecisionRule.
class NN_Precision<string precision>
    : TraitList<[PrecisionOpInterface,
                 NN_Fact<"InPrecision", "::pipewright::nn::PrecisionRule::" # precision>]>;

/// What becomes of integers, an enumerator of IntegerUse: of an op without
/// indices.
class NN_Integers<string use>
    : TraitList<[IntegerOpInterface,
                 NN_Fact<"UsesIntegers", "::pipewright::nn::IntegerUse::" # use>]>;

/// Weights, what reads and writes them, and calls of kernels: passes know each
/// of these ops by its name, and it has none of the facts above.
def NN_KnownByName : NativeOpTrait<"KnownByName"> {
  let cppNamespace = "::pipewright::nn";
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNBASE_TD
