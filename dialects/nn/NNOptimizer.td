//===- NNOptimizer.td - Optimizer updates ------------------*- tablegen -*-===//
//
// One update of a flat buffer of weights. Attributes have the names and
// meanings of torch.optim 1.13; what changes from step to step comes in %h =
// (learning rate, 1/(1-beta1^t), 1/(1-beta2^t), gradient scale). Attributes
// are f64 because 1 - beta2 has few digits left in f32.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD
#define PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD

include "dialects/nn/NNEnums.td"

/// All operands but the last (%h) have the type of the first, and so have all
/// results: the buffers are updated in place after bufferization.
class NN_OptimizerOp<string mnemonic> : NN_Op<mnemonic, [
    Pure, InferTypeOpAdaptor, NN_Cost]> {
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context,
        ::std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferOptimizer({location, getOperationName()},
                            adaptor.getOperands(), types);
    }
    int64_t $cppClass::getFlops() {
      return optimizerFlops(getOperation());
    }
  }];
}

def NN_SgdOp : NN_OptimizerOp<"sgd"> {
  let summary = "Update weights by stochastic gradient descent";
  let description = [{
    With `g *= h[3]` and `lr = h[0]`:

    ```
    g += weight_decay * w
    buffer = momentum * buffer + g          if there is a momentum buffer
    d = nesterov ? g + momentum * buffer : buffer
    w -= lr * d                             (d = g without a momentum buffer)
    ```

    Constraints:
    - (C1) all operands but `h` have one type.
    - (C2) `h` is `tensor<4xf32>`.
    - (C3) there is a result for the momentum buffer when there is an operand.
    - (C4) `momentum` is 0 without a momentum buffer, and `nesterov` needs one.

    Example:

    ```mlir
    %w1, %m1 = nn.sgd %w, %g momentum_buffer %m, %h momentum = 9.000000e-01
        weight_decay = 1.000000e-04 nesterov
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>)
        -> (tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_F32Tensor:$w, NN_F32Tensor:$g,
                       Optional<NN_F32Tensor>:$momentum_buffer,
                       NN_F32Tensor:$h, F64Attr:$momentum,
                       F64Attr:$weight_decay, UnitAttr:$nesterov);
  let results = (outs NN_F32Tensor:$new_w,
                      Optional<NN_F32Tensor>:$new_momentum_buffer);
  let assemblyFormat = [{
    $w `,` $g (`momentum_buffer` $momentum_buffer^)? `,` $h
    `momentum` `=` $momentum `weight_decay` `=` $weight_decay
    (`nesterov` $nesterov^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_AdamOp : NN_OptimizerOp<"adam"> {
  let summary = "Update weights by Adam";
  let description = [{
    With `g *= h[3]` and `lr = h[0]`:

    ```
    g += weight_decay * w
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    w -= lr * h[1] * m / (sqrt(v * h[2]) + eps)
    ```

    so weight decay is added to the gradient, as `torch.optim.Adam` does.

    Constraints: those of `nn.sgd`.

    Example:

    ```mlir
    %w1, %m1, %v1 = nn.adam %w, %g, %m, %v, %h beta1 = 9.000000e-01
        beta2 = 9.990000e-01 eps = 1.000000e-08 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>,
         tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_F32Tensor:$w, NN_F32Tensor:$g, NN_F32Tensor:$m,
                       NN_F32Tensor:$v, NN_F32Tensor:$h, F64Attr:$beta1,
                       F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let results = (outs NN_F32Tensor:$new_w, NN_F32Tensor:$new_m,
                      NN_F32Tensor:$new_v);
  let assemblyFormat = [{
    $w `,` $g `,` $m `,` $v `,` $h `beta1` `=` $beta1 `beta2` `=` $beta2
    `eps` `=` $eps `weight_decay` `=` $weight_decay attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_AdamWOp : NN_OptimizerOp<"adamw"> {
  let summary = "Update weights by AdamW";
  let description = [{
    With `g *= h[3]` and `lr = h[0]`:

    ```
    w *= 1 - lr * weight_decay
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    w -= lr * h[1] * m / (sqrt(v * h[2]) + eps)
    ```

    so weight decay shrinks the weight itself, as `torch.optim.AdamW` does.

    Constraints: those of `nn.sgd`.

    Example:

    ```mlir
    %w1, %m1, %v1 = nn.adamw %w, %g, %m, %v, %h beta1 = 9.000000e-01
        beta2 = 9.990000e-01 eps = 1.000000e-08 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>,
         tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_F32Tensor:$w, NN_F32Tensor:$g, NN_F32Tensor:$m,
                       NN_F32Tensor:$v, NN_F32Tensor:$h, F64Attr:$beta1,
                       F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let results = (outs NN_F32Tensor:$new_w, NN_F32Tensor:$new_m,
                      NN_F32Tensor:$new_v);
  let assemblyFormat = [{
    $w `,` $g `,` $m `,` $v `,` $h `beta1` `=` $beta1 `beta2` `=` $beta2
    `eps` `=` $eps `weight_decay` `=` $weight_decay attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_RmspropOp : NN_OptimizerOp<"rmsprop"> {
  let summary = "Update weights by RMSProp";
  let description = [{
    With `g *= h[3]` and `lr = h[0]`:

    ```
    g += weight_decay * w
    v = alpha * v + (1 - alpha) * g * g
    d = g / (sqrt(v) + eps)
    buffer = momentum * buffer + d          if there is a momentum buffer
    w -= lr * buffer                        (or d)
    ```

    Constraints:
    - (C1) all operands but `h` have one type.
    - (C2) `h` is `tensor<4xf32>`.
    - (C3) there is a result for the momentum buffer when there is an operand.
    - (C4) `momentum` is 0 without a momentum buffer.

    Example:

    ```mlir
    %w1, %v1 = nn.rmsprop %w, %g, %v, %h alpha = 9.900000e-01
        eps = 1.000000e-08 momentum = 0.000000e+00 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>)
        -> (tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_F32Tensor:$w, NN_F32Tensor:$g, NN_F32Tensor:$v,
                       Optional<NN_F32Tensor>:$momentum_buffer,
                       NN_F32Tensor:$h, F64Attr:$alpha, F64Attr:$eps,
                       F64Attr:$momentum, F64Attr:$weight_decay);
  let results = (outs NN_F32Tensor:$new_w, NN_F32Tensor:$new_v,
                      Optional<NN_F32Tensor>:$new_momentum_buffer);
  let assemblyFormat = [{
    $w `,` $g `,` $v (`momentum_buffer` $momentum_buffer^)? `,` $h
    `alpha` `=` $alpha `eps` `=` $eps `momentum` `=` $momentum
    `weight_decay` `=` $weight_decay attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNOPTIMIZER_TD
