//===- NNReduction.td - Reductions over dimensions ---------*- tablegen -*-===//
//
// Reductions over any set of dimensions, with one form for all of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNREDUCTION_TD
#define PIPEWRIGHT_DIALECTS_NN_NNREDUCTION_TD

include "dialects/nn/NNEnums.td"

class NN_ReductionOp<string mnemonic, string precision>
    : NN_InferredOp<mnemonic, [
          NN_Differentiable, NN_Cost, NN_Kernel, NN_Precision<precision>]> {
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$axes,
                       UnitAttr:$keep_dims);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `axes` `=` $axes (`keep_dims` $keep_dims^)? attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasFolder = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context,
        ::std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferReduction({location, getOperationName()}, adaptor.getX(),
                            adaptor.getAxes(), adaptor.getKeepDims(), types);
    }
    RowSpace $cppClass::getRowSpace() {
      return reductionSpace(getX(), getAxes());
    }
    int64_t $cppClass::getFlops() { return getX().getType().getNumElements(); }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor) {
      // A reduction over nothing is its operand.
      return getAxes().empty() ? getX() : ::mlir::OpFoldResult();
    }
  }];
}

def NN_ReduceSumOp : NN_ReductionOp<"reduce_sum", "F32"> {
  let summary = "Sum over some dimensions";
  let description = [{
    Reduced dimensions vanish, or stay as 1 with `keep_dims`.

    Constraints:
    - (C1) axes are dimensions of the operand, ascending and without repeats.

    Example:

    ```mlir
    %y = nn.reduce_sum %x axes = [1] keep_dims
      : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
  }];
}

def NN_ReduceMeanOp : NN_ReductionOp<"reduce_mean", "F32"> {
  let summary = "Average over some dimensions";
  let description = [{
    Reduced dimensions vanish, or stay as 1 with `keep_dims`.

    Constraints:
    - (C1) axes are dimensions of the operand, ascending and without repeats.

    Example:

    ```mlir
    %y = nn.reduce_mean %x axes = [1] keep_dims
      : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
  }];
}

def NN_ReduceMaxOp : NN_ReductionOp<"reduce_max", "FollowOperands"> {
  let summary = "Take the largest over some dimensions";
  let description = [{
    Elements that share the largest value share its gradient equally.

    Reduced dimensions vanish, or stay as 1 with `keep_dims`.

    Constraints:
    - (C1) axes are dimensions of the operand, ascending and without repeats.

    Example:

    ```mlir
    %y = nn.reduce_max %x axes = [1] keep_dims
      : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNREDUCTION_TD
