//===- NNOptimizer.td - Optimizer updates ------------------*- tablegen -*-===//
//
// One update of weights, by any optimizer of OptimizerTable.h. README.md has
// the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD
#define PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD

include "dialects/nn/NNBase.td"
include "mlir/IR/AttrTypeBase.td"

def NN_OptimizerAttr : AttrDef<NN_Dialect, "Optimizer"> {
  let mnemonic = "optimizer";
  let summary = "An optimizer of the table, and its hyper-parameters";
  let description = [{
    Names, hyper-parameters, their defaults and ranges stand in
    OptimizerTable.cpp. What is not written has its default. All that is
    compiled in is printed; what changes from step to step, such as the learning
    rate, where it is not the default. Values are f64 because 1 - beta2 has few
    digits left in f32.

    Examples:

    ```mlir
    module attributes {pipe.program = #pipe.program<optimizer = <adamw>>} {}
    module attributes {pipe.program = #pipe.program<optimizer = <sgd
        lr = 1.000000e-01, momentum = 9.000000e-01, weight_decay = 1.000000e-04,
        nesterov = true>>} {}
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
                        "::mlir::DenseF64ArrayAttr":$values);
  let builders = [AttrBuilder<(ins "const OptimizerChoice &":$choice)>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    OptimizerChoice getChoice() const;
  }];
}

def NN_UpdateOp : NN_Op<"update", [
    Pure, InferTypeOpAdaptor, NN_Cost, NN_KnownByName]> {
  let summary = "Update weights by an optimizer";
  let description = [{
    From weights, gradients and the optimizer's states, in the table's order,
    the new weights and states; buffers are updated in place after
    bufferization. `h` holds what changes from step to step, one number for each
    scalar of the optimizer's row. With `may_skip`, weights and states stay what
    they are where `GradientScale` is not a number.

    Constraints:
    - (C1) all operands but `h` have one type.
    - (C2) `h` has one dimension, with a number for each scalar.
    - (C3) there are as many states as the optimizer keeps.

    Example:

    ```mlir
    %w1, %m1 = nn.update %w, %g states %m scalars %h
        by <sgd momentum = 9.000000e-01, weight_decay = 1.000000e-04,
            nesterov = true>
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>)
        -> (tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_F32Tensor:$w, NN_F32Tensor:$g,
                       Variadic<NN_F32Tensor>:$states, NN_F32Tensor:$h,
                       NN_OptimizerAttr:$optimizer, UnitAttr:$may_skip);
  let results = (outs NN_F32Tensor:$new_w, Variadic<NN_F32Tensor>:$new_states);
  let assemblyFormat = [{
    $w `,` $g (`states` $states^)? `scalars` $h `by` $optimizer
    (`may_skip` $may_skip^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD
