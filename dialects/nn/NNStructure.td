//===- NNStructure.td - Weights and constants -------------*- tablegen -*-===//
//
// Weights are symbols whose bytes lie in a side file; these ops declare, read
// and write them. Constants that shape the computation stand in the text.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNSTRUCTURE_TD
#define PIPEWRIGHT_DIALECTS_NN_NNSTRUCTURE_TD

include "dialects/nn/NNEnums.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def NN_WeightOp : NN_Op<"weight", [Symbol, NN_KnownByName]> {
  let summary = "Declare a tensor whose bytes lie in the weights file";
  let description = [{
    The symbol is the tensor's key in the weights file. The role says how it
    lives: a `parameter` is trained, a `state` is written by the model and
    saved but not trained (running statistics), a `constant` is data that no
    model ever trains (a table of sines), and a `frozen` weight is a parameter
    that the user does not want to be trained: it is computed with as a
    parameter is, in bf16 too, but has no gradient.

    With `file_rows` the file has only so many rows of it: along the first
    dimension. The others begin as zeros, and get no gradient but zeros.

    With `channels_last` the type is that of the tensor in memory,
    `[O, kh, kw, C]`; in every file it is `[O, C, kh, kw]`.

    With `outputs` it is a matrix that an optimizer which takes matrices as a
    whole, such as muon, takes as one; its outputs are its rows or its columns.

    Constraints:
    - (C1) a `parameter`, `frozen` weight or `state` has element type f32.
    - (C2) only a `parameter` or `frozen` weight of rank 1 or 2 has `file_rows`, at
      least 1 and at most as many as the tensor has.
    - (C3) with `channels_last` the rank is 4.
    - (C4) only a `parameter` or `frozen` weight of rank 2 whose rows are all in
      the file has `outputs`.

    Example:

    ```mlir
    nn.weight @fc.bias role = parameter : tensor<64xf32>
    nn.weight @wte role = parameter file_rows = 50257 : tensor<50304x768xf32>
    nn.weight @fc.weight role = parameter outputs = columns : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<NN_Tensor>:$type,
    NN_WeightRoleAttr:$role,
    OptionalAttr<I64Attr>:$file_rows,
    UnitAttr:$channels_last,
    OptionalAttr<NN_MatrixOutputsAttr>:$outputs
  );
  let assemblyFormat = [{
    $sym_name `role` `=` $role (`file_rows` `=` $file_rows^)?
    (`channels_last` $channels_last^)? (`outputs` `=` $outputs^)? attr-dict
    `:` $type
  }];
  let extraClassDeclaration = [{
    /// In memory.
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// As it stands in files: perhaps fewer rows, or another order.
    ::mlir::RankedTensorType getFileType();
    /// Whether the model learns it, now or when the user lets it.
    bool isLearned() {
      return getRole() == WeightRole::Parameter ||
             getRole() == WeightRole::Frozen;
    }
  }];
  let hasVerifier = 1;
}

def NN_ParameterOp : NN_Op<"parameter", [
    Pure, NN_KnownByName, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Read a weight of any role";
  let description = [{
    The value is that at the start of the task: optimizer updates happen
    between steps, and what `nn.assign_state` writes is seen by later tasks.

    Constraints:
    - (C1) the symbol names an `nn.weight`.
    - (C2) the result type is the weight's type, or that with element type
      bf16 for a weight whose role is `parameter` or `frozen`: its working
      copy, which is rounded whenever the weight is updated.

    Example:

    ```mlir
    %w = nn.parameter @fc.weight : tensor<64x32xf32>
    %b = nn.parameter @fc.bias : tensor<64xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// Whether it reads the bf16 copy of the weight.
    bool isWorkingCopy() {
      return getResult().getType().getElementType().isBF16();
    }
  }];
}

def NN_ConstantOp : NN_InferredOp<"constant", [
    ConstantLike, NN_Elementwise<"Leaf">, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">]> {
  let summary = "A small constant or a splat";
  let description = [{
    Constants that are data rather than shape belong into the weights file.

    Constraints:
    - (C1) the value is a splat or has at most 4096 elements.

    Example:

    ```mlir
    %half = nn.constant dense<5.000000e-01> : tensor<f32>
    ```
  }];
  let arguments = (ins NN_DenseElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let extraClassDeclaration = [{
    /// The largest number of elements of a constant that is not a splat.
    static constexpr int64_t kMaxElements = 4096;
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_CausalMaskOp : NN_Op<"causal_mask", [
    Pure, NN_Elementwise<"Leaf">, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">]> {
  let summary = "True where the column is at most the row";
  let description = [{
    Rows and columns are the last two dimensions; the others repeat the mask.

    Constraints:
    - (C1) the result has rank 2 or more.
    - (C2) the last two dimensions are equal.

    Example:

    ```mlir
    %mask = nn.causal_mask : tensor<1x1x128x128xi1>
    ```
  }];
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_AssignStateOp : NN_Op<"assign_state", [
    NN_KnownByName,
    MemoryEffects<[MemWrite<NN_StateResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Write a weight whose role is `state`";
  let description = [{
    `decay` says that the value is `decay` times the old one plus something
    that does not depend on it, as running statistics are.

    Constraints:
    - (C1) the symbol names an `nn.weight` whose role is `state`.
    - (C2) the value's type is the weight's type.

    Example:

    ```mlir
    nn.assign_state @mean, %v decay = 9.000000e-01 : tensor<8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, NN_F32Tensor:$value,
                       OptionalAttr<F32Attr>:$decay);
  let assemblyFormat = [{
    $weight `,` $value (`decay` `=` $decay^)? attr-dict `:` type($value)
  }];
}

def NN_AccumulateGradientOp : NN_Op<"accumulate_gradient", [
    NN_KnownByName,
    MemoryEffects<[MemRead<NN_GradientResource>,
                   MemWrite<NN_GradientResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Add to the gradient of a weight whose role is `parameter`";
  let description = [{
    The gradient of a step starts at zero; every backward task adds to it.

    Constraints:
    - (C1) the symbol names an `nn.weight` whose role is `parameter`.
    - (C2) the gradient's type is the weight's type.

    Example:

    ```mlir
    nn.accumulate_gradient @fc.bias, %db : tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, NN_F32Tensor:$gradient);
  let assemblyFormat = "$weight `,` $gradient attr-dict `:` type($gradient)";
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNSTRUCTURE_TD
