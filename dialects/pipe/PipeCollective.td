//===- PipeCollective.td - What a group of ranks does together -*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

def Pipe_CollectiveOp : Pipe_Op<"collective", [
    ParentOneOf<["StepOp", "RankOp"]>,
    DeclareOpInterfaceMethods<Pipe_StepOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "One member's part in what a group of ranks does together";
  let description = [{
    Works in place, on what the members hold in common: `all_reduce` sums
    gradients, and all members have the sum; of `reduce_scatter` each member has
    one part of the sum. `all_gather` puts the parts of weights together again,
    and `broadcast` hands out the weights of the member `root`. `of` names one
    weight; without it, all that the optimizer of `stage` updates is meant.
    `rounded` means the copies of weights that tasks read as bf16, in place of
    the weights themselves.

    Sums are in the order of `over`, and the parts are as long as can be: that
    of the first members ends before that of the last begins.
    `buffers` is where a rank keeps what others send it to add.

    In a rank's program it never blocks: it is over at its `pipe.wait_collective`,
    and uses its bytes until then; where streams are assigned, until `event`,
    which is recorded when it is over. In a step it is over when its result is
    used.

    All members of a group issue the same collectives in the same order; that,
    and that nobody waits in a circle, is proved by `pipe-verify-schedule`.

    Constraints:
    - (C1) `over` lists at least two ranks, each once and none of them
      negative.
    - (C2) in a rank's program, the rank is one of them.
    - (C3) exactly `broadcast` has a `root`, which is one of them.
    - (C4) `all_reduce` and `reduce_scatter` take and return the stage's
      `!pipe.gradient`; the others take that or its `!pipe.updated`, and return
      the latter.
    - (C5) only `all_gather` and `broadcast` may be of `rounded` weights.

    Life span: made by `pipe-all-reduce-tied-weights`, in rank programs from
    `pipe-insert-transfers` on.

    Example:
    ```mlir
    %r = pipe.collective all_reduce of @wte in @s0 (%g) over [0, 3]
        : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    ```
  }];
  let arguments = (ins Pipe_CollectiveKindAttr:$kind,
    UnitAttr:$rounded, OptionalAttr<FlatSymbolRefAttr>:$weight, FlatSymbolRefAttr:$stage,
    AnyTypeOf<[Pipe_GradientType, Pipe_UpdatedType]>:$value,
    DenseI64ArrayAttr:$over,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$root,
    Pipe_OptionalBuffers:$buffers,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$event);
  let results = (outs AnyTypeOf<[Pipe_GradientType, Pipe_UpdatedType]>:$result);
  let assemblyFormat = [{
    $kind (`rounded` $rounded^)? (`of` $weight^)? `in` $stage `(` $value `)` `over` $over
    (`root` $root^)? (`buffers` $buffers^)? (`event` $event^)? attr-dict
    `:` functional-type($value, $result)
  }];
  let extraClassDeclaration = [{
    /// Whether it works on gradients; on weights otherwise.
    bool isOfGradients() {
      return getKind() == CollectiveKind::all_reduce ||
             getKind() == CollectiveKind::reduce_scatter;
    }
    /// The bytes beside the range that its rank needs, which is that of its
    /// program, where the range has so many bytes.
    int64_t scratchBytes(int64_t rangeBytes);
    /// Whether both may be under way: they are about two weights.
    bool isApartFrom(CollectiveOp other) {
      return getWeightAttr() && other.getWeightAttr() &&
             getWeightAttr() != other.getWeightAttr();
    }
    /// The wait that ends it; null where there is none.
    WaitCollectiveOp getWait();
  }];
  let hasVerifier = 1;
}

def Pipe_WaitCollectiveOp : Pipe_WaitOp<"wait_collective"> {
  let summary = "Wait until the rank's oldest outstanding collective is over";
  let description = [{
    Everything else that uses the collective's result stands behind it
    (`pipe-verify-schedule`).

    Constraints:
    - (C1) waits for the result of a `pipe.collective`.

    Example:
    ```mlir
    pipe.wait_collective %r : !pipe.gradient<@s0>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_GradientType, Pipe_UpdatedType]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD
