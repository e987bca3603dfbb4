//===- NNInterfaces.td - Interfaces of nn ops --------------*- tablegen -*-===//
//
// Passes ask these instead of keeping lists of ops: how an op is
// differentiated, what it costs, which way it is lowered, and what it computes
// in. No method has a default: an op that does not say is not compiled.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_TD
#define PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_TD

include "mlir/IR/Interfaces.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that can build its vector-Jacobian product from other nn ops. A
    gradient flows into its first result only: those after it are by-products
    (statistics, window positions).
  }];
  let methods = [
    InterfaceMethod<[{
        Builds one gradient per operand, null where none flows on, from that of
        the first result; last ones that are null may be left out. The op may
        use its own operands and results: what it uses is what gets stashed.
      }],
      "::mlir::FailureOr<::pipewright::nn::Gradients>", "buildGradients",
      (ins "::pipewright::nn::GradientBuilder &":$g, "::mlir::Value":$dy)>
  ];
  let extraClassDeclaration = [{
    /// Builds the vector-Jacobian product at the builder's insertion point.
    /// `resultGrads[i]` is null where no gradient flows into result `i`; one
    /// that flows into a by-product is an error. Fills `operandGrads` with one
    /// value per operand, null where none flows on.
    ::llvm::LogicalResult
    buildVjp(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGrads,
             ::llvm::SmallVectorImpl<::mlir::Value> &operandGrads);
  }];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that knows how much arithmetic it does.
  }];
  let methods = [
    InterfaceMethod<[{
        Floating point operations of one execution: a multiply-add counts 2, a
        pointwise op 1 per element and arithmetic operation.
      }],
      "int64_t", "getFlops">
  ];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that is compiled through linalg, in one kernel with those of its
    neighbours whose loops fit to its own.
  }];
  let methods = [
    InterfaceMethod<"How its loops go over rows, and what becomes of results.",
      "::pipewright::nn::RowSpace", "getRowSpace">
  ];
}

def LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that is lowered to a call of the runtime library.
  }];
  let methods = [
    InterfaceMethod<[{
        The call of the runtime. `addedTo` is the weight to whose gradient the
        result is added in place, empty where the result is stored.
      }],
      "::pipewright::nn::LibraryCall", "getCall",
      (ins "::llvm::StringRef":$addedTo)>
  ];
}

def AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    Scaled dot-product attention, or its gradient, in whatever layout its
    tensors have. The methods are accessors that each op has by itself.
  }];
  let methods = [
    InterfaceMethod<"The additive mask; null where there is none.",
                    "::mlir::Value", "getMask">,
    InterfaceMethod<"What scores are multiplied by.",
                    "::llvm::APFloat", "getScale">,
    InterfaceMethod<"The bound of scores, before the mask; 0 where there is none.",
                    "::llvm::APFloat", "getSoftcap">,
    InterfaceMethod<"Whether the mask has a gradient.",
                    "bool", "getMaskGradient">,
    InterfaceMethod<"Whether a row sees only columns up to its own.",
                    "bool", "getCausal">,
    InterfaceMethod<"The share of the softmax that is dropped.",
                    "::llvm::APFloat", "getDropoutRate">,
    InterfaceMethod<"Sets that share.", "void", "setDropoutRate",
                    (ins "::llvm::APFloat":$rate)>,
    InterfaceMethod<"Which random numbers decide what is dropped.",
                    "uint64_t", "getDropoutId">
  ];
}

def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    Marks an op whose result is its operand's bytes under another shape: it
    needs no code and no buffer.
  }];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that says what becomes of its floats where a model is lowered to bf16.
  }];
  let methods = [
    InterfaceMethod<"What it wants a float operand to be.",
      "::pipewright::nn::PrecisionRule", "getPrecision",
      (ins "::mlir::OpOperand &":$operand)>
  ];
}

def IntegerOpInterface : OpInterface<"IntegerOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that takes integers. They may be indices that a user gives: who
    follows them from an input to a table asks each op on the way.
  }];
  let methods = [
    InterfaceMethod<"What it does with the integers of an operand.",
      "::pipewright::nn::IntegerUse", "getIntegerUse",
      (ins "::mlir::OpOperand &":$operand)>,
    InterfaceMethod<"Which indices it takes, where it takes indices.",
      "::pipewright::nn::IndexRange", "getIndexRange">
  ];
}

def StatefulOpInterface : OpInterface<"StatefulOpInterface"> {
  let cppNamespace = "::pipewright::nn";
  let description = [{
    An op that behaves differently in evaluation, or that leaves something
    behind which must happen once however often the op is recomputed.
  }];
  let methods = [
    InterfaceMethod<[{
        Removes the effect on state, and nothing else: the results stay the
        same bits. Recompute calls this on its copy of the op.
      }],
      "void", "dropEffects", (ins)>,
    InterfaceMethod<[{
        Builds what replaces the op in evaluation. Fills `results` with one
        value per result, null where evaluation has none.
      }],
      "::llvm::LogicalResult", "buildInference",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>
  ];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_TD
