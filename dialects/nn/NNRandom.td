//===- NNRandom.td - Random numbers by counter -------------*- tablegen -*-===//
//
// Counter-based randomness: the same op on the same element of the same step
// draws the same number wherever and however often it runs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNRANDOM_TD
#define PIPEWRIGHT_DIALECTS_NN_NNRANDOM_TD

include "dialects/nn/NNEnums.td"

def NN_DropoutOp : NN_Op<"dropout", [
    Pure, SameOperandsAndResultType, NN_Differentiable, NN_Cost,
    NN_Library, NN_Precision<"FollowOperands">,
    DeclareOpInterfaceMethods<StatefulOpInterface>]> {
  let summary = "Drop elements by chance and scale the others";
  let description = [{
    Philox-4x32-10 with the seed as key and the counter
    `(element / 4, id, micro-batch, step)`; element `e` takes word `e % 4`. It
    is dropped when the word is less than `rate * 2^32`; the others are scaled
    by `1 / (1 - rate)`. Its gradient is the same op with the same `id` on
    `dy`, so nothing is stashed, and the op is pure within a step. In
    evaluation it is the identity.

    Constraints:
    - (C1) `rate` is at least 0 and less than 1.

    Example:

    ```mlir
    %y = nn.dropout %x rate = 1.000000e-01 id = 3 : tensor<4x128x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, F32Attr:$rate, I64Attr:$id);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `rate` `=` $rate `id` `=` $id attr-dict `:` type($result)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNRANDOM_TD
