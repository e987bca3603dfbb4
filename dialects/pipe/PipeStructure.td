//===- PipeStructure.td - Stages and their bodies ----------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPESTRUCTURE_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPESTRUCTURE_TD

include "dialects/pipe/PipeBase.td"

def Pipe_StageOp : Pipe_Op<"stage", [
    Symbol, HasParent<"::mlir::ModuleOp">, SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "A consecutive part of the model";
  let description = [{
    Holds one `pipe.forward`, and once the passes have run one `pipe.backward`
    and one `pipe.evaluate`. Not isolated: bodies name weights of the module.

    Constraints:
    - (C1) exactly one `pipe.forward`, at most one `pipe.backward` and one
      `pipe.evaluate`, nothing else.
    - (C2) `rank` is not negative.

    Life span: made by `pipe-partition-stages`; `pipe-schedule` adds `rank`.

    Example:
    ```mlir
    pipe.stage @s0 on rank 1 {
      pipe.forward sources [#pipe.input<"x">] {
      ^bb0(%x: tensor<4x8xf32>):
        pipe.return %x : tensor<4x8xf32>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$rank);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name (`on` `rank` $rank^)? attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = [{
    ForwardOp getForward();
    /// Null before `pipe-differentiate`, or where no gradient is needed.
    BackwardOp getBackward();
    /// Null where nothing is evaluated.
    EvaluateOp getEvaluate();
  }];
  let hasRegionVerifier = 1;
}

class Pipe_BodyOp<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, [
        HasParent<"StageOp">, SingleBlockImplicitTerminator<"ReturnOp">,
        DeclareOpInterfaceMethods<OpAsmOpInterface,
                                  ["getAsmBlockArgumentNames"]>] # traits> {
  let regions = (region SizedRegion<1>:$bodyRegion);
  code commonDeclaration = [{
    /// The terminator: results and stash.
    ReturnOp getReturn();
  }];
}

def Pipe_ForwardOp : Pipe_BodyOp<"forward"> {
  let summary = "What a stage computes on one micro-batch";
  let description = [{
    One block argument per source; the terminator returns the values that other
    stages consume and the stash.

    Constraints:
    - (C1) one source per block argument, each `#pipe.input` or `#pipe.output`.
    - (C2) arguments are ranked tensors of static shape.
  }];
  let arguments = (ins ArrayAttr:$sources);
  let assemblyFormat = "`sources` $sources attr-dict-with-keyword $bodyRegion";
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_EvaluateOp : Pipe_BodyOp<"evaluate"> {
  let summary = "The forward of a stage on held-out data: no stash, no dropout";
  let description = [{
    Same sources and results as a forward, running statistics in place of the
    micro-batch's own.

    Constraints:
    - (C1) as (C1) and (C2) of `pipe.forward`.
    - (C2) nothing is stashed.
  }];
  let arguments = (ins ArrayAttr:$sources);
  let assemblyFormat = "`sources` $sources attr-dict-with-keyword $bodyRegion";
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_BackwardOp : Pipe_BodyOp<"backward"> {
  let summary = "The gradients of a stage on one micro-batch";
  let description = [{
    Block arguments, in this order: the forward arguments listed in `inputs`,
    the forward results listed in `outputs`, every stash value, and the
    gradients of the forward results listed in `gradients_of`. Returns the
    gradients of the forward arguments listed in `input_gradients`. Weight
    gradients leave through `nn.accumulate_gradient`.

    Constraints:
    - (C1) the argument list is exactly the one above, types included.
    - (C2) the returned types are those of the listed forward arguments.
    - (C3) nothing is stashed.
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$inputs, DenseI64ArrayAttr:$outputs,
    DenseI64ArrayAttr:$gradients_of, DenseI64ArrayAttr:$input_gradients);
  let assemblyFormat = [{
    `inputs` $inputs `outputs` $outputs `gradients_of` $gradients_of
    `input_gradients` $input_gradients attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_ReturnOp : Pipe_Op<"return", [
    Pure, Terminator, ParentOneOf<["ForwardOp", "BackwardOp", "EvaluateOp"]>,
    AttrSizedOperandSegments]> {
  let summary = "End a stage body: results, and what is kept for the backward";
  let description = [{
    Example:
    ```mlir
    pipe.return %y : tensor<4x8xf32> stash %mean : tensor<4xf32>
    ```
  }];
  let arguments = (ins
    Variadic<AnyStaticShapeTensor>:$values,
    Variadic<AnyStaticShapeTensor>:$stash);
  let assemblyFormat = [{
    ($values^ `:` type($values))? (`stash` $stash^ `:` type($stash))?
    attr-dict
  }];
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange(), ::mlir::ValueRange());
  }]>];
}

def Pipe_ReportOp : Pipe_Op<"report", [
    ParentOneOf<["ForwardOp", "EvaluateOp"]>]> {
  let summary = "Hand a named model output to the runtime";
  let description = [{
    The loss is reported under the name `loss`, in training and evaluation.
    The runtime reads the value at this point of the body.

    Example:
    ```mlir
    pipe.report "loss" %loss : tensor<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, AnyStaticShapeTensor:$value);
  let assemblyFormat = "$name $value attr-dict `:` type($value)";
}

def Pipe_CopyOp : Pipe_Op<"copy", [
    Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "The same value in bytes of its own";
  let description = [{
    Inserted by `pipe-plan-memory` where one value needs two buffers, for
    example when it is both returned and stashed.

    Example:
    ```mlir
    %1 = pipe.copy %0 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPESTRUCTURE_TD
