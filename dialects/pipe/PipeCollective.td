//===- PipeCollective.td - What a group of ranks does together -*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"
include "dialects/pipe/PipeTask.td"

def Pipe_CollectiveOp : Pipe_Op<"collective", [
    ParentOneOf<["StepOp", "RankOp"]>, Pipe_GroupOpInterface,
    DeclareOpInterfaceMethods<Pipe_StepOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "One member's part in what a group of ranks does together";
  let description = [{
    Works in place, on what the members hold in common. Of each number one
    member is the owner: the member in whose part of the range it is, or the
    member `root`. Kinds that add (`all_reduce`, ...) are of gradients: owners
    have the sum in the end; the others are of weights: owners have the right
    value in the beginning. With kinds that hand out (`broadcast`, ...) all
    members have what the owners have. Which kinds there are, and which of this
    they do, stands in `runtime/calls/CollectiveKinds.h`.

    `of` names one weight; without it, all that the optimizer of `stage` updates
    is meant, or one `bucket` of it (`buckets` of `pipe.optimizer`), of which
    collectives stand one behind the other from bucket 0 on, which is also the
    order in which their gradients are whole. `rounded` means the copies of
    weights that tasks read as bf16, in place of the weights themselves. Ranks
    that give a `split` value work on what their replica has of the weight, or
    of the bucket: its weights are a bucket in all stages that hold them (proved
    by `pipe-verify-unrolled`).

    The members are the ranks that `over` lists, of one replica; `over replicas`
    are the copies of the rank in all replicas (of which `#pipe.program` has the
    number). Sums are binary trees over `over`, or the replicas, and the parts
    are as long as can be: that of the first members ends before that of the
    last begins.
    `buffers` is where a rank keeps what others send it to add.

    In a rank's program it never blocks: it is over at its `pipe.wait_collective`,
    and uses its bytes until then; where streams are assigned, until `event`,
    which is recorded when it is over. In a step it is over when its result is
    used.

    All members of a group issue the same collectives in the same order; that,
    and that nobody waits in a circle, is proved by `pipe-verify-schedule`. All
    replicas run one program, so what they do together is proved with it.

    Constraints:
    - (C1) the group has at least two members, each once, and no negative rank.
    - (C2) in a rank's program, the rank is a member.
    - (C3) exactly kinds with a root have a `root`, which is a member; over
      replicas it is the number of one.
    - (C4) kinds that add take and return the stage's `!pipe.gradient`; the
      others take that or its `!pipe.updated`, and return the latter.
    - (C5) only kinds that do not add may be of `rounded` weights.
    - (C6) over replicas, `all_reduce` makes a `partial` value whole,
      `reduce_scatter` a `partial` one `split`, and `all_gather` a `split` one
      whole; `rounded` weights are gathered of one that is whole, too. A bucket
      behind the first takes what that made. All others leave what replicas
      have of the value as it is; so does that of one weight over replicas,
      which is none that the stage updates (proved by `pipe-verify-unrolled`).
    - (C7) a `bucket` is of no single weight.
    - (C8) of one weight over replicas it is `all_reduce`.

    Life span: made by `pipe-synchronize-weights`, in rank programs from
    `pipe-insert-transfers` on.

    Example:
    ```mlir
    %r = pipe.collective all_reduce of @wte in @s0 (%g) over [0, 3]
        : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    ```
    ```mlir
    %r = pipe.collective all_reduce in @s0 (%g) over replicas
        : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    ```
  }];
  let arguments = (ins Pipe_CollectiveKindAttr:$kind,
    UnitAttr:$rounded, OptionalAttr<FlatSymbolRefAttr>:$weight,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$bucket,
    FlatSymbolRefAttr:$stage, AnyTypeOf<[Pipe_GradientType, Pipe_UpdatedType]>:$value,
    Pipe_GroupAttr:$over,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$root,
    Pipe_OptionalBuffers:$buffers,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$event);
  let results = (outs AnyTypeOf<[Pipe_GradientType, Pipe_UpdatedType]>:$result);
  let assemblyFormat = [{
    $kind (`rounded` $rounded^)? (`of` $weight^)? (`bucket` $bucket^)? `in` $stage `(` $value `)` `over` custom<Group>($over)
    (`root` $root^)? (`buffers` $buffers^)? (`event` $event^)? attr-dict
    `:` functional-type($value, $result)
  }];
  let extraClassDeclaration = [{
    /// Whether it works on gradients; on weights otherwise.
    bool isOfGradients() { return getKindAttr().getFacts().reduces; }
    int64_t countMembers();
    /// Whether each replica works on its part of the range alone.
    bool isOfPart();
    /// The bytes in an arena that it is about, or has a part of; none where its
    /// stage has no place for them.
    std::optional<BufferAttr> getRange(ArenaOp arena);
    /// All of what its stage's optimizer has of it, of which it may be about a
    /// bucket; none where there is no such range.
    std::optional<BufferAttr> getFlatRange(OptimizerOp optimizer);
    /// The bytes beside the range that its rank needs, which is that of its
    /// program, where what it works on has so many bytes.
    int64_t scratchBytes(int64_t bytes);
    /// Whether both may be under way: they are about two weights, or buckets.
    bool isApartFrom(CollectiveOp other) {
      return (getWeightAttr() && other.getWeightAttr() &&
              getWeightAttr() != other.getWeightAttr()) ||
             (getBucket() && other.getBucket() &&
              getBucket() != other.getBucket());
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

def Pipe_KeepGradientsOp : Pipe_ScheduledOp<"keep_gradients", [
    AllTypesMatch<["gradients", "result"]>]> {
  let summary = "Add a replica's part of a sum to what it keeps, and clear the rest";
  let description = [{
    Takes what a `reduce_scatter` over replicas has made of a stage's gradients,
    adds this replica's part of it to what earlier ones of the step have left
    (`kept` of `pipe.optimizer`), and clears the whole range: other stages may
    use its bytes, until the next backward of this stage adds to it again. That
    one takes the result in place of the gradients summed so far, and so does
    the update, which then works on what was kept.

    In a step it stands in front of the task that needs the bytes, and comes
    before that in its rank's program.

    Constraints:
    - (C1) takes and returns the stage's gradients, `split` over replicas.

    Life span: made by `pipe-share-gradients`.

    Example:
    ```mlir
    %k = pipe.keep_gradients in @s0 (%r) : !pipe.gradient<@s0, split>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage, Pipe_GradientType:$gradients);
  let results = (outs Pipe_GradientType:$result);
  let assemblyFormat = [{
    `in` $stage `(` $gradients `)` attr-dict `:` type($gradients)
  }];
  let hasVerifier = 1;
}

def Pipe_FoldGradientsOp : Pipe_ScheduledOp<"fold_gradients", [
    AllTypesMatch<["gradients", "result"]>]> {
  let summary = "Add a group of micro-batches to a binary tree of sums";
  let description = [{
    Behind the last of a group's backwards, a stage's gradients are what this
    group alone has added. They are summed with those of earlier groups as the
    nodes of a binary tree: with as many aside (`aside` of `pipe.optimizer` and
    `pipe.place`) as `group` has ones at its end, in binary. The last group
    leaves the sum of all in the gradients' range; another one puts it aside, on
    the level that has come free, and clears the range for the next group.

    So the order of additions depends on micro-batches and groups alone, not on
    how many replicas there are: where each replica has a power of two of them,
    its sum is a node of the tree, and `pipe.collective` adds the nodes above.

    Constraints:
    - (C1) `groups` is a power of two above 1, and `group` is below it.
    - (C2) takes and returns the stage's gradients, `split` over nothing.

    Life span: made by `pipe-fold-gradients`.

    Example:
    ```mlir
    %f = pipe.fold_gradients in @s0 (%g) group 1 of 4 : !pipe.gradient<@s0>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage, Pipe_GradientType:$gradients,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$group,
    ConfinedAttr<I64Attr, [IntMinValue<2>]>:$groups);
  let results = (outs Pipe_GradientType:$result);
  let assemblyFormat = [{
    `in` $stage `(` $gradients `)` `group` $group `of` $groups attr-dict
    `:` type($gradients)
  }];
  let extraClassDeclaration = [{
    bool isLast() { return getGroup() + 1 == getGroups(); }
    /// How many sums that are aside it adds; what it puts aside lies on the
    /// level of that number, counted from 0.
    int64_t countAdded() { return llvm::countr_one(static_cast<uint64_t>(getGroup())); }
    /// Sums that may be aside at one time.
    int64_t countLevels() { return llvm::Log2_64(getGroups()); }
    /// A range that it works on, and where sums of it are aside.
    struct Sums {
      BufferAttr gradients, aside;
      BufferAttr level(int64_t number) const;
    };
    /// Of its stage in the arena of its rank. Fails, with a diagnostic, where
    /// there is no room for what is aside.
    mlir::FailureOr<llvm::SmallVector<Sums, 1>> getSums(ArenaOp arena);
  }];
  let hasVerifier = 1;
}

def Pipe_LoadWeightsOp : Pipe_ScheduledOp<"load_weights"> {
  let summary = "Put a replica's part of a stage's weights where tasks read them";
  let description = [{
    Copies what the replica keeps of the stage's weights from step to step
    (`home` of `pipe.optimizer`) to its part of the flat range that tasks read,
    and of the bf16 copies. An `all_gather` over replicas then makes the range
    whole. Tasks take what that makes; behind the last of them other stages may
    use the bytes. `in_place` the part is there already, and nobody else has the
    bytes.

    In a step it stands in front of a task of its rank. The bytes are free when
    the rank's task before that is over. Where stages of the rank are not always
    put together in the same bytes, `range` is the number of the one that it
    takes, and `weights` is where that lies.

    Constraints:
    - (C1) returns the stage's weights, `split` over replicas.
    - (C2) what is `in_place` has no `range`.

    Life span: made by `pipe-gather-weights`; `pipe-plan-memory` adds `weights`.

    Example:
    ```mlir
    %l = pipe.load_weights in @s0 : !pipe.updated<@s0, split>
    %w = pipe.collective all_gather in @s0 (%l) over replicas
        : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage,
    UnitAttr:$in_place,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$range,
    OptionalAttr<Pipe_BufferAttr>:$weights);
  let results = (outs Pipe_UpdatedType:$result);
  let assemblyFormat = [{
    `in` $stage (`in_place` $in_place^)? (`range` $range^)? (`weights` $weights^)?
    attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    /// What puts together what it loads: weights, their bf16 copies, or both.
    ::llvm::SmallVector<CollectiveOp, 2> getGathers();
  }];
  let hasVerifier = 1;
}

def Pipe_ClipGradientsOp : Pipe_ScheduledOp<"clip_gradients", [
    Pipe_GroupOpInterface]> {
  let summary = "One rank's part in clipping gradients by their norm";
  let description = [{
    The norm is that of the gradients of the whole model, each weight counted
    once, wherever it is. If it is above the program's `clip_norm`, updates take
    gradients times `clip_norm / norm`; the sums themselves stay as they are.

    It takes the gradients of all stages of its rank that have an update, behind
    all that is added to them, and stands where no collective of its rank is
    under way. It waits for all ranks of its replica, and is over when the
    program goes on. Replicas have the same gradients, so each finds the same
    norm. `stage` is one of the rank's.

    Constraints:
    - (C1) `over` has ranks, each once, and none that is negative; in a rank's
      program, the rank is one of them.
    - (C2) returns what it takes: the gradients of different stages.
    - (C3) replicas have all of the gradients.

    Life span: made by `pipe-synchronize-weights`.

    Example:
    ```mlir
    %c:2 = pipe.clip_gradients in @s0 (%g0, %g2) over [0, 1]
        : (!pipe.gradient<@s0>, !pipe.gradient<@s2>)
        -> (!pipe.gradient<@s0>, !pipe.gradient<@s2>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage,
    Variadic<Pipe_GradientType>:$gradients, Pipe_GroupAttr:$over);
  let results = (outs Variadic<Pipe_GradientType>:$clipped);
  let assemblyFormat = [{
    `in` $stage `(` $gradients `)` `over` custom<Group>($over) attr-dict
    `:` functional-type($gradients, $clipped)
  }];
  let extraClassDeclaration = [{
    /// What one of its results was before.
    ::mlir::Value getGradientOf(::mlir::Value result) {
      return getGradients()[::llvm::cast<::mlir::OpResult>(result)
                                .getResultNumber()];
    }
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPECOLLECTIVE_TD
