//===- PipeTask.td - Steps and tasks -----------------------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPETASK_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPETASK_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

def Pipe_StepOp : Pipe_Op<"step", [
    HasParent<"::mlir::ModuleOp">, SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "All tasks of one step as a dataflow graph";
  let description = [{
    Every dependence is a use of a value: what a task needs stands in its
    operands, and nothing else orders it.

    Constraints:
    - (C1) holds only ops that say what they do there (`StepOpInterface`).

    Life span: made by `pipe-unroll-microbatches`, ordered by `pipe-schedule`,
    split into `pipe.rank` by `pipe-insert-transfers`.
  }];
  let arguments = (ins Pipe_StepModeAttr:$mode);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$mode attr-dict-with-keyword $bodyRegion";
  let hasRegionVerifier = 1;
}

/// What a stage does, on the stream `compute`: it is over when the program goes
/// on.
class Pipe_ScheduledOp<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, [ParentOneOf<["StepOp", "RankOp"]>,
      DeclareOpInterfaceMethods<Pipe_StepOpInterface>,
      DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]
      # traits> {
  let extraClassDefinition = [{
    ::mlir::FlatSymbolRefAttr $cppClass::getStageName() {
      return getStageAttr();
    }
    StreamAttr $cppClass::getWorkStream() {
      return StreamAttr::compute(getContext());
    }
    bool $cppClass::isAsynchronous() { return false; }
    ::std::optional<uint64_t> $cppClass::getRecordedEvent() {
      return ::std::nullopt;
    }
  }];
}

def Pipe_InputOp : Pipe_ScheduledOp<"input"> {
  let summary = "Load one micro-batch of a model input for a stage";
  let description = [{
    Constraints:
    - (C1) `micro_batch` is not negative.

    Example:
    ```mlir
    %t = pipe.input "tokens" micro_batch 0 for @s0 : tensor<4x128xi64>
    ```
  }];
  let arguments = (ins StrAttr:$name,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$micro_batch,
    FlatSymbolRefAttr:$stage, Pipe_OptionalBuffers:$buffers);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $name `micro_batch` $micro_batch `for` $stage (`buffers` $buffers^)?
    attr-dict `:` type($result)
  }];
}

def Pipe_TaskOp : Pipe_ScheduledOp<"task", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One stage at work on one micro-batch";
  let description = [{
    Operands by kind: `forward`, `evaluate`: one per source of the stage.
    `backward`: saved inputs, saved outputs, the stash (if there is one; of a
    stage that `splits_stash`, the two ranges of it), the
    gradients of the outputs, and the gradients summed so far (absent on the
    first backward task of a stage, and on stages without parameters; where a
    step has several updates, the first backward task after an update takes what
    that update made, `!pipe.updated`, since it cleared the gradients; behind a
    `pipe.keep_gradients` it takes what that made).
    `input_gradient`, `weight_gradient`: the same of the half's own lists, of
    the stash only ranges that the half reads any of; no gradients summed so far on
    `input_gradient`; on `weight_gradient` the handover (if there is one) before
    them. `recompute`: saved inputs, saved outputs, and the stash if it reads
    any of it; what it hands over is an operand of the others that read any of
    it, behind the gradients of the outputs; a stash that it makes again is in
    place of the forward's. `update`: the summed gradients.
    Where replicas have a part each of the weights, tasks that read weights take
    what was put together for them (`pipe.load_weights`), `!pipe.updated`: last,
    but before gradients summed so far; `weights` is where, unless that is always
    in the same bytes.
    Results by kind: `forward`: the stage's results and its stash (if there is
    one). `evaluate`: the stage's results. `backward`: the input gradients and
    the summed gradients. `input_gradient`: the input gradients and the handover
    (if there is one). `weight_gradient`: the summed gradients. `recompute`:
    the handover, or, in a stage with `keeps`, the stash. `update`:
    `!pipe.updated`.

    Where a step has several updates, `number` says which one an update is,
    beginning with 0. Where tasks may read old weights, `version` is the number
    of updates of the step that the weights have seen: 0 is what the last step
    left, -1 what its last update overwrote; and `weights` is where that version
    lies, or, on an update, where it copies the weights to before it overwrites
    them, if anybody still needs them.

    `overlaps_next` marks the first task of a pair: the schedule means it to run
    together with the next task of its rank, which does not need its results. A
    target that cannot overlap runs them one after the other.

    Where what a rank does with its replicas begins while a backward goes on,
    that is run in so many `parts`: the first one here, each other one by a
    `pipe.resume`. Before the last of them, nothing but these and the
    collectives that begin behind parts may stand.

    Constraints:
    - (C1) `micro_batch` is present on every kind but `update`.
    - (C2) `stage` names a `pipe.stage` of the module.
    - (C3) operand and result types are those listed above.
    - (C4) only updates have a `number`, and only tasks that train on a
      micro-batch have a `version`, which is at least -1.
    - (C5) only tasks that train on a micro-batch have `overlaps_next`.
    - (C6) only tasks that make gradients of weights, in a rank's program, have
      `parts`, and these are at least two.

    Example:
    ```mlir
    %h, %st = pipe.task forward @s0 micro_batch 0 (%t)
        : (tensor<4x128xi64>) -> (tensor<4x128x256xf32>, !pipe.stash<@s0>)
    ```
  }];
  let arguments = (ins Pipe_TaskKindAttr:$kind, FlatSymbolRefAttr:$stage,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$micro_batch,
    Variadic<AnyType>:$operands_, Pipe_OptionalBuffers:$buffers,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$number,
    OptionalAttr<I64Attr>:$version, OptionalAttr<Pipe_BufferAttr>:$weights,
    UnitAttr:$overlaps_next,
    OptionalAttr<ConfinedAttr<I64Attr, [IntMinValue<2>]>>:$parts);
  let results = (outs Variadic<AnyType>:$results_);
  let assemblyFormat = [{
    $kind $stage (`micro_batch` $micro_batch^)? (`number` $number^)?
    (`version` $version^)? (`parts` $parts^)? `(` $operands_ `)`
    (`buffers` $buffers^)? (`weights` $weights^)?
    (`overlaps_next` $overlaps_next^)? attr-dict
    `:` functional-type($operands_, $results_)
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results,
      "TaskKindAttr":$kind, "::mlir::FlatSymbolRefAttr":$stage,
      "::mlir::IntegerAttr":$microBatch, "::mlir::ValueRange":$operands,
      "::mlir::ArrayAttr":$buffers), [{
    build($_builder, $_state, results, kind, stage, microBatch, operands,
          buffers, /*number=*/nullptr, /*version=*/nullptr,
          /*weights=*/nullptr, /*overlaps_next=*/nullptr, /*parts=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    /// The gradients summed so far, or what an update made that cleared them;
    /// null where it begins a sum or makes none.
    ::mlir::Value getSummed();
    /// What it makes of that type; null where it makes none.
    ::mlir::Value getStash(::mlir::Type type);
    /// The weights that were put together for it; null where they are there.
    ::mlir::Value getGathered();
    /// Makes it take these.
    void setGathered(::mlir::Value weights);
    /// The last op that belongs to it: a `pipe.resume`, or itself.
    ::mlir::Operation *getLastPart();
  }];
  let hasVerifier = 1;
}

def Pipe_ResumeOp : Pipe_ScheduledOp<"resume", [
    AllTypesMatch<["gradients", "result"]>]> {
  let summary = "The next part of a backward that has begun";
  let description = [{
    Goes on with the task that made the `gradients`, or with what collectives
    have made of them since, up to the next place of its body where all that is
    added to a bucket has been added. In the last `part` it goes on to the end:
    then the task is over, and its results are there.

    Constraints:
    - (C1) stands in a rank's program, behind the part before it.
    - (C2) takes and returns the gradients of its stage.

    Life span: made by `pipe-interleave-sums`.

    Example:
    ```mlir
    %g = pipe.task backward @s0 micro_batch 1 parts 2 (%st)
        : (!pipe.stash<@s0>) -> !pipe.gradient<@s0, partial>
    %0 = pipe.collective all_reduce bucket 0 in @s0 (%g) over replicas
        : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
    %r = pipe.resume in @s0 (%0) part 1 : !pipe.gradient<@s0>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage, Pipe_GradientType:$gradients,
    ConfinedAttr<I64Attr, [IntMinValue<1>]>:$part);
  let results = (outs Pipe_GradientType:$result);
  let assemblyFormat = [{
    `in` $stage `(` $gradients `)` `part` $part attr-dict `:` type($gradients)
  }];
  let extraClassDeclaration = [{
    /// The task that it goes on with; null where the gradients come from
    /// elsewhere.
    TaskOp getTask();
  }];
  let hasVerifier = 1;
}

def Pipe_HoldOp : Pipe_ScheduledOp<"hold", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A stash, or its bytes, on the rank of a stage";
  let description = [{
    What the forward `of` a stage and `micro_batch` keeps is on the rank of
    `stage` from here on: as bytes on its own rank, whence it is sent, as bytes
    on another one, which keeps it meanwhile, and as a stash where it has come
    back. It does nothing itself: what it takes from another rank is sent, and
    its result is in the bytes of what it takes.

    In a step, its place among the tasks of the rank `of` whose stage it is says
    from where on it is sent or comes back. A rank that sends its own stash has
    sent it before it begins the second task behind that place, whoever keeps it
    being ready. `behind` is something that its rank holds and sends back
    before: the same bytes will do for both.

    Constraints:
    - (C1) it takes or returns bytes, and a stash only `of` its own stage, on
      that one's rank.
    - (C2) `of` names a `pipe.stage` of the module.
    - (C3) `behind` is what another `pipe.hold` in the same stage holds as
      bytes.

    Life span: made by `pipe-schedule`; `behind` is for `pipe-insert-transfers`.

    Example:
    ```mlir
    %bytes = pipe.hold (%st) of @s0 micro_batch 3 in @s0
        : !pipe.stash<@s0> -> tensor<4096xi8>
    %kept = pipe.hold (%bytes) of @s0 micro_batch 3 in @s3
        : tensor<4096xi8> -> tensor<4096xi8>
    %back = pipe.hold (%kept) of @s0 micro_batch 3 in @s0
        : tensor<4096xi8> -> !pipe.stash<@s0>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_StashType, AnyStaticShapeTensor]>:$value,
    FlatSymbolRefAttr:$of, ConfinedAttr<I64Attr, [IntNonNegative]>:$micro_batch,
    FlatSymbolRefAttr:$stage, Optional<AnyStaticShapeTensor>:$behind);
  let results = (outs AnyTypeOf<[Pipe_StashType, AnyStaticShapeTensor]>:$result);
  let assemblyFormat = [{
    `(` $value `)` `of` $of `micro_batch` $micro_batch `in` $stage
    (`behind` `(` $behind^ `:` type($behind) `)`)? attr-dict
    `:` type($value) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether a rank gives its own stash away.
    bool isAway() {
      return getStageAttr() != getOfAttr();
    }
    Content contentOf();
  }];
  let hasVerifier = 1;
}

def Pipe_GradientOfOp : Pipe_ScheduledOp<"gradient_of"> {
  let summary = "A stage's gradient of a tied weight, as a view";
  let description = [{
    Example:
    ```mlir
    %t = pipe.gradient_of @wte in @s3 (%g)
        : (!pipe.gradient<@s3>) -> tensor<512x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$stage,
    Pipe_GradientType:$gradient, Pipe_OptionalBuffers:$buffers);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $weight `in` $stage `(` $gradient `)` (`buffers` $buffers^)? attr-dict
    `:` functional-type($gradient, $result)
  }];
}

def Pipe_AddGradientOp : Pipe_ScheduledOp<"add_gradient", [
    AllTypesMatch<["gradient", "result"]>]> {
  let summary = "Add another stage's gradient of a tied weight to one's own";
  let description = [{
    At the owner, which then updates the weight for all; where gradients are
    all-reduced, `pipe.collective` does it.

    Example:
    ```mlir
    %g2 = pipe.add_gradient @wte in @s0 (%g, %t)
        : !pipe.gradient<@s0>, tensor<512x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$stage,
    Pipe_GradientType:$gradient, AnyStaticShapeTensor:$addend);
  let results = (outs Pipe_GradientType:$result);
  let assemblyFormat = [{
    $weight `in` $stage `(` $gradient `,` $addend `)` attr-dict
    `:` type($gradient) `,` type($addend)
  }];
}

def Pipe_WeightOfOp : Pipe_ScheduledOp<"weight_of"> {
  let summary = "The owner's new value of a tied weight, as a view";
  let description = [{
    Example:
    ```mlir
    %w = pipe.weight_of @wte in @s0 (%u)
        : (!pipe.updated<@s0>) -> tensor<512x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$stage,
    Pipe_UpdatedType:$updated, Pipe_OptionalBuffers:$buffers);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $weight `in` $stage `(` $updated `)` (`buffers` $buffers^)? attr-dict
    `:` functional-type($updated, $result)
  }];
}

def Pipe_SetWeightOp : Pipe_ScheduledOp<"set_weight"> {
  let summary = "Set a stage's copy of a tied weight and clear its gradient";
  let description = [{
    The gradient operand orders this after the last use of that copy in the
    step.

    Example:
    ```mlir
    pipe.set_weight @wte in @s3 (%w, %g)
        : tensor<512x64xf32>, !pipe.gradient<@s3>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$stage,
    AnyStaticShapeTensor:$value, Pipe_GradientType:$gradient);
  let assemblyFormat = [{
    $weight `in` $stage `(` $value `,` $gradient `)` attr-dict
    `:` type($value) `,` type($gradient)
  }];
}

def Pipe_MergeStatisticsOp : Pipe_ScheduledOp<"merge_statistics", [
    Pipe_GroupOpInterface]> {
  let summary = "Make one of what replicas have as a stage's running statistics";
  let description = [{
    Each replica updates the running statistics of its copy of the stage from
    its own micro-batches. Here they become, on all replicas, what one replica
    would have that runs all micro-batches of the batch in their order. This
    needs statistics whose updates are `decay * old + ...`: the first replica
    begins a step with what the step before has left, the others with zeros;
    then the statistics are the sum of the replicas' own, each times the decay
    of all micro-batches behind its own.

    It stands behind all forwards of the stage and where no collective of its
    rank is under way, waits for the other replicas, and is over when the
    program goes on. All replicas run one program, so
    nobody waits in a circle for it.

    Constraints:
    - (C1) the group is that of the replicas, of which the module has at least
      two.

    Life span: made by `pipe-synchronize-weights`.

    Example:
    ```mlir
    pipe.merge_statistics in @s0 over replicas
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage, Pipe_GroupAttr:$over);
  let assemblyFormat = "`in` $stage `over` custom<Group>($over) attr-dict";
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPETASK_TD
