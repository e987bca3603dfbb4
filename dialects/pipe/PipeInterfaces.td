//===- PipeInterfaces.td - What gradient bodies have in common -*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD

include "mlir/IR/OpBase.td"

def Pipe_GradientBodyInterface : OpInterface<"GradientBodyInterface"> {
  let cppNamespace = "::pipewright::pipe";
  let description = [{
    `pipe.backward` and its two halves. Block arguments, in this order: the
    forward arguments `getInputs`, the forward results `getOutputs`, the values
    `getStashFields` of the forward's stash, the gradients of the forward
    results `getGradientsOf`, and, in `pipe.weight_gradient`, all that
    `pipe.input_gradient` hands over.
  }];
  let methods = [
    InterfaceMethod<"Which forward arguments it reads.",
      "::llvm::ArrayRef<int64_t>", "getInputs">,
    InterfaceMethod<"Which forward results it reads.",
      "::llvm::ArrayRef<int64_t>", "getOutputs">,
    InterfaceMethod<"Which values of the forward's stash it reads.",
      "::llvm::SmallVector<int64_t>", "getStashFields">,
    InterfaceMethod<"Of which forward results it reads the gradients.",
      "::llvm::ArrayRef<int64_t>", "getGradientsOf">,
    InterfaceMethod<"Of which forward arguments it returns the gradients.",
      "::llvm::ArrayRef<int64_t>", "getInputGradients">,
    InterfaceMethod<"Whether it reads what `pipe.input_gradient` hands over.",
      "bool", "takesHandover">
  ];
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD
