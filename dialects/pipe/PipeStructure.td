//===- PipeStructure.td - Stages and their bodies ----------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPESTRUCTURE_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPESTRUCTURE_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

def Pipe_StageOp : Pipe_Op<"stage", [
    Symbol, HasParent<"::mlir::ModuleOp">, SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "A consecutive part of the model";
  let description = [{
    Holds one `pipe.forward`, and once the passes have run one `pipe.backward`
    and one `pipe.evaluate`; where the schedule splits backwards also
    `pipe.input_gradient` and `pipe.weight_gradient`, and where it recomputes in
    tasks of their own `pipe.recompute`. Not isolated: bodies name weights of
    the module.

    Constraints:
    - (C1) exactly one `pipe.forward`, at most one of each other body, nothing
      else.
    - (C2) `rank` is one of at most `kMaxProcesses`.
    - (C3) both halves of a backward or none, and these and `pipe.recompute`
      only beside the whole.
    - (C4) `keeps` only beside `pipe.recompute`.
    - (C5) `splits_stash` only beside `pipe.weight_gradient`.

    Of a stage that `keeps` the stashes of some micro-batches, `pipe.recompute`
    makes those of all others again.

    The stash of a stage that `splits_stash` is kept in two ranges: what
    `pipe.weight_gradient` reads of it, and the rest, whose memory is free when
    the input gradients are there. So is what `pipe.recompute` hands over.

    A stage that `mirrors` another one is the same part of the model, with
    weights of its own, for the second half of the micro-batches; the mirrored
    one then works on the first half only.

    Life span: made by `pipe-partition-stages`, copied by `pipe-mirror-stages`;
    `pipe-split-backward` adds `splits_stash`, `pipe-schedule` adds `rank`, and to
    `keeps` the size of a window.

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
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$rank,
                       OptionalAttr<FlatSymbolRefAttr>:$mirrors,
                       OptionalAttr<Pipe_WindowAttr>:$keeps,
                       UnitAttr:$splits_stash);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name (`mirrors` $mirrors^)? (`on` `rank` $rank^)? (`keeps` $keeps^)?
    (`splits_stash` $splits_stash^)? attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = [{
    ForwardOp getForward();
    /// Null before `pipe-differentiate`, or where no gradient is needed.
    BackwardOp getBackward();
    /// Null where nothing is evaluated.
    EvaluateOp getEvaluate();
    /// Null where backwards recompute inside themselves, or not at all.
    RecomputeOp getRecompute();
    /// Null where the backward is not split.
    InputGradientOp getInputGradient();
    WeightGradientOp getWeightGradient();
    /// The body that tasks of a kind run; null where there is none.
    ::mlir::Operation *bodyOf(TaskKind kind);
    /// The same for `backward`, its halves and `recompute`.
    GradientBodyInterface gradientBodyOf(TaskKind kind);
    /// What `pipe.forward`, `pipe.recompute` or `pipe.input_gradient` keeps for
    /// the bodies behind it; empty where there is no such body, or where it
    /// makes the forward's stash again.
    ::mlir::ValueRange getKept(TaskKind giver);
    /// The ranges in which that lies, in the order in which tasks make and take
    /// them.
    ::llvm::SmallVector<StashRange> getRanges(TaskKind giver);
    /// The types of those of which a body reads any field.
    ::llvm::SmallVector<::mlir::Type>
    getRangesReadBy(GradientBodyInterface body, TaskKind giver);
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

def Pipe_BackwardOp : Pipe_BodyOp<"backward", [
    DeclareOpInterfaceMethods<Pipe_GradientBodyInterface>]> {
  let summary = "The gradients of a stage on one micro-batch";
  let description = [{
    Block arguments, in this order: the forward arguments listed in `inputs`,
    the forward results listed in `outputs`, every stash value, the gradients of
    the forward results listed in `gradients_of`, and what `pipe.recompute`
    hands over. Returns the
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

def Pipe_RecomputeOp : Pipe_BodyOp<"recompute", [
    DeclareOpInterfaceMethods<Pipe_GradientBodyInterface>]> {
  let summary = "The begin of a backward, which needs no gradient";
  let description = [{
    Computes again what the forward has not stashed, before the gradients of its
    results are there. Block arguments as in `pipe.input_gradient`, but no
    gradients. Returns nothing but what it hands over to `pipe.backward`, or to
    its halves, as its own stash; or, in a stage that `keeps` the stashes of
    some micro-batches, the forward's stash once more.

    Constraints:
    - (C1) as (C1) of `pipe.backward`.
    - (C2) nothing is returned, and something is stashed.
    - (C3) in a stage with `keeps` it takes nothing of the forward's stash, and
      its own has the types of that.

    Life span: made by `pipe-split-recompute`, or by `pipe-rematerialize`.

    Example:
    ```mlir
    pipe.recompute inputs [0] outputs [] stash [] {
    ^bb0(%in0: tensor<4x8xf32>):
      %h = nn.relu %in0 : tensor<4x8xf32>
      pipe.return stash %h : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$inputs, DenseI64ArrayAttr:$outputs,
    DenseI64ArrayAttr:$stash);
  let assemblyFormat = [{
    `inputs` $inputs `outputs` $outputs `stash` $stash
    attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_InputGradientOp : Pipe_BodyOp<"input_gradient", [
    DeclareOpInterfaceMethods<Pipe_GradientBodyInterface>]> {
  let summary = "The half of a backward that other stages wait for";
  let description = [{
    Block arguments as in `pipe.backward`, but of the stash only the values
    listed in `stash`, and of what is recomputed those in `recomputed`. Returns the gradients of the forward arguments listed in
    `input_gradients`, and as its own stash what `pipe.weight_gradient` needs of
    what it computed: the handover.

    Constraints:
    - (C1), (C2) as those of `pipe.backward`.

    Example:
    ```mlir
    pipe.input_gradient inputs [] outputs [] stash [0] gradients_of [0]
        input_gradients [0] {
    ^bb0(%stash0: tensor<4x8xf32>, %d_out0: tensor<4x8xf32>):
      ...
      pipe.return %dx : tensor<4x8xf32> stash %dh : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$inputs, DenseI64ArrayAttr:$outputs,
    DenseI64ArrayAttr:$stash, DenseI64ArrayAttr:$gradients_of,
    DenseI64ArrayAttr:$input_gradients,
    OptionalAttr<DenseI64ArrayAttr>:$recomputed);
  let assemblyFormat = [{
    `inputs` $inputs `outputs` $outputs `stash` $stash
    `gradients_of` $gradients_of (`recomputed` $recomputed^)?
    `input_gradients` $input_gradients attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_WeightGradientOp : Pipe_BodyOp<"weight_gradient", [
    DeclareOpInterfaceMethods<Pipe_GradientBodyInterface>]> {
  let summary = "The half of a backward that nobody waits for but the update";
  let description = [{
    Block arguments as in `pipe.input_gradient`, and after them the handover.
    Returns nothing: weight gradients leave through `nn.accumulate_gradient`.

    Constraints:
    - (C1) as (C1) of `pipe.backward`.
    - (C2) nothing is returned or stashed.

    Example:
    ```mlir
    pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [] {
    ^bb0(%in0: tensor<4x8xf32>, %handover0: tensor<4x8xf32>):
      %dw = nn.matmul %in0, %handover0 transpose_a : ...
      nn.accumulate_gradient @w, %dw : tensor<8x8xf32>
      pipe.return
    }
    ```
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$inputs, DenseI64ArrayAttr:$outputs,
    DenseI64ArrayAttr:$stash, DenseI64ArrayAttr:$gradients_of,
    OptionalAttr<DenseI64ArrayAttr>:$recomputed);
  let assemblyFormat = [{
    `inputs` $inputs `outputs` $outputs `stash` $stash
    `gradients_of` $gradients_of (`recomputed` $recomputed^)? attr-dict-with-keyword $bodyRegion
  }];
  let extraClassDeclaration = commonDeclaration;
  let hasRegionVerifier = 1;
}

def Pipe_ReturnOp : Pipe_Op<"return", [
    Pure, Terminator, ParentOneOf<["ForwardOp", "BackwardOp", "InputGradientOp",
                                 "WeightGradientOp", "RecomputeOp",
                                 "EvaluateOp"]>,
    AttrSizedOperandSegments]> {
  let summary = "End a stage body: results, and what is kept for a later body";
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
