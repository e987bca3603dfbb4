//===- PipeBuffer.td - The planned arena of a rank ---------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEBUFFER_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEBUFFER_TD

include "dialects/pipe/PipeBase.td"

def Pipe_ArenaOp : Pipe_Op<"arena", [
    HasParent<"::mlir::ModuleOp">, SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "The bytes of one rank: their number and their fixed part";
  let description = [{
    `host` is how much of its host's memory the rank needs beside it, for stashes
    that live there.

    Constraints:
    - (C1) holds only `pipe.place`, `pipe.optimizer` and `pipe.region`, all of
      whose buffers lie in the arena and end within `bytes`.

    Example:
    ```mlir
    pipe.arena rank 0 bytes 4096 {
      pipe.place @w in @s0 weight #pipe.buffer<arena 0 at 0 bytes 64> owner
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$rank,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$bytes,
    DefaultValuedOptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$host_bytes);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    `rank` $rank `bytes` $bytes (`host` $host_bytes^)? attr-dict-with-keyword $bodyRegion
  }];
  let hasRegionVerifier = 1;
}

def Pipe_PlaceOp : Pipe_Op<"place", [HasParent<"ArenaOp">]> {
  let summary = "Where a stage's copy of a weight and its gradient live";
  let description = [{
    `owner` marks the copy that is saved, and, of a parameter, that the
    optimizer updates; `updated` marks a further copy that an optimizer updates,
    with the same gradients (`pipe.all_reduced`).
    Stages that read a weight as bf16 read it from `rounded`, a rounded copy
    that is as new as the weight. `kernel` updates the weight, where its
    optimizer works weight by weight; where no optimizer writes the rounded
    copy, `kernel` does. Of a matrix that its optimizer takes as a whole,
    `kernel` makes a direction, and `finish` goes there when it has been made
    orthogonal. A gradient that no optimizer of the stage works on has
    sums of groups of micro-batches `aside` (`pipe.fold_gradients`), one behind
    the other, each aligned to 64 bytes.

    Constraints:
    - (C1) `rounded` has half of the weight's bytes.
    - (C2) `aside` is of a gradient that is not updated, and holds a whole
      number of those.
    - (C3) `finish` stands beside a `kernel`.

    Example:
    ```mlir
    pipe.place @w in @s0 weight #pipe.buffer<arena 0 at 0 bytes 64>
        gradient #pipe.buffer<arena 0 at 64 bytes 64> owner
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$stage,
    Pipe_BufferAttr:$buffer, OptionalAttr<Pipe_BufferAttr>:$gradient,
    OptionalAttr<Pipe_BufferAttr>:$rounded, OptionalAttr<SymbolRefAttr>:$kernel,
    UnitAttr:$owner, UnitAttr:$updated, OptionalAttr<Pipe_BufferAttr>:$aside,
    OptionalAttr<SymbolRefAttr>:$finish);
  let extraClassDeclaration = [{
    /// Whether the optimizer of its stage updates this copy.
    bool isUpdated() { return getGradient() && (getOwner() || getUpdated()); }
  }];
  let assemblyFormat = [{
    $weight `in` $stage `weight` $buffer (`gradient` $gradient^)?
    (`rounded` $rounded^)? (`kernel` $kernel^)? (`finish` $finish^)?
    (`owner` $owner^)?
    (`updated` $updated^)? (`aside` $aside^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Pipe_OptimizerOp : Pipe_Op<"optimizer", [HasParent<"ArenaOp">]> {
  let summary = "The flat ranges that a stage's update works on";
  let description = [{
    Weights, gradients and each optimizer state have the same size and the same
    layout; `hyper` holds the 32-bit floats that the runtime fills for each
    update, the scalars of the optimizer's row. One of `kernels` updates it all,
    unless each place has a kernel of its own. `weights` are always the newest; where a
    schedule lets tasks read older ones, an update copies what it is about to
    overwrite to one of `versions`, which have the same layout too. Stages that
    read bf16 weights read `rounded`, rounded by each update, in the same layout
    and half the size; `versions` are then of these.

    If replicas share the update, each of `shards` has an equal part of the
    ranges, in their order: it updates that part alone, and `states` are of it.
    Where `buckets` says how many bytes of the ranges are one bucket, it has an
    equal part of each, which one of `kernels` updates, and these lie one behind
    the other in what is of its part alone.
    So is `kept`: where a stage's gradients are summed over replicas more than
    once in a step, the sums of that part are added there, and the update takes
    them from there. `home` is what a replica keeps of the weights from step to step,
    where it puts them together for a few tasks at a time (`pipe.load_weights`):
    it updates that, and other stages may have bytes of `weights`, and of
    `rounded`, too. Where they are not always put together in the same bytes,
    `other_ranges` are the others, of what tasks read and in its layout.
    `rounded_home` is the bf16 copy of that part. Without that, where weights are
    `split`, a replica has its part of what tasks read in place from step to
    step, and puts them together there before the first task of a step that
    reads them. Where
    tasks read bf16 copies alone, `home` stands for all of `weights`, which then
    only says how they lie, and has no bytes. `aside` holds sums of groups of
    micro-batches (`pipe.fold_gradients`), one behind the other, in the layout
    of the gradients.

    Where the optimizer takes matrices as a whole, these lie behind the first
    `elementwise` bytes of the ranges: `kernels` update only what is in front of
    them, and states that no matrix has are only of that. The products of the
    update have room in `workspace`. If replicas share the update, matrices are
    buckets of their own, and each lies in the part of one replica, which
    updates it.

    Constraints:
    - (C1) `rounded` has half of the weights' bytes.
    - (C2) each of `versions` has the size of what tasks read: of `rounded`
      where it is given, else of `weights`.
    - (C3) there are as many `shards` as replicas.
    - (C4) a part, of each bucket, is a multiple of `kShardAlignment` long.
    - (C5) `kept` and `home` are of shards, and have the size of a part.
    - (C6) `rounded_home` is of `home` and `rounded`, and has half the size of
      `home`.
    - (C7) `aside` holds a whole number of sums.
    - (C8) `elementwise` is less than the weights' bytes, stands beside
      `workspace`, and ends a bucket where there are `shards`.
    - (C9) `buckets` are together as large as the weights.
    - (C10) there is one of `kernels` for all that is in front of matrices, or,
      of shards, for each bucket there.
    - (C11) `other_ranges` have the size of what tasks read, and stand beside
      `home` and no `versions`.
    - (C12) what is `split` has `shards`, and no part of it is elsewhere.

    Example:
    ```mlir
    pipe.optimizer @s0 kernels [@kernels::@adamw_16]
        weights #pipe.buffer<arena 0 at 0 bytes 64>
        gradients #pipe.buffer<arena 0 at 64 bytes 64>
        states [#pipe.buffer<arena 0 at 128 bytes 64>]
        hyper #pipe.buffer<arena 0 at 192 bytes 16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stage,
    OptionalAttr<Pipe_KernelArrayAttr>:$kernels,
    Pipe_BufferAttr:$weights, Pipe_BufferAttr:$gradients,
    Pipe_BufferArrayAttr:$states, Pipe_BufferAttr:$hyper,
    OptionalAttr<Pipe_BufferAttr>:$rounded, Pipe_OptionalBuffers:$versions,
    OptionalAttr<ConfinedAttr<I64Attr, [IntMinValue<2>]>>:$shards,
    OptionalAttr<Pipe_BufferAttr>:$kept, OptionalAttr<Pipe_BufferAttr>:$home,
    OptionalAttr<Pipe_BufferAttr>:$rounded_home,
    OptionalAttr<Pipe_BufferAttr>:$aside, OptionalAttr<I64Attr>:$elementwise,
    OptionalAttr<Pipe_BufferAttr>:$workspace,
    OptionalAttr<DenseI64ArrayAttr>:$buckets,
    Pipe_OptionalBuffers:$other_ranges, UnitAttr:$split);
  let assemblyFormat = [{
    $stage (`kernels` $kernels^)? (`shards` $shards^)? (`buckets` $buckets^)?
    (`split` $split^)? `weights` $weights
    (`home` $home^)? `gradients` $gradients (`kept` $kept^)? (`aside` $aside^)?
    `states` $states `hyper` $hyper (`rounded` $rounded^)?
    (`rounded_home` $rounded_home^)? (`versions` $versions^)?
    (`other_ranges` $other_ranges^)?
    (`elementwise` $elementwise^)? (`workspace` $workspace^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether what tasks read is put together for them.
    bool isGathered() { return getSplit() || isElsewhere(); }
    /// Whether a replica keeps its part of it elsewhere meanwhile.
    bool isElsewhere() {
      return getHome() && (!getRounded() || getRoundedHome());
    }
    /// The newest version of what tasks read, where it is always in the same
    /// bytes; otherwise one of its ranges.
    BufferAttr getNewest() { return getRounded().value_or(getWeights()); }
    /// Whether each task says where the weights are that it reads (`weights`),
    /// or, if `isEvaluation`, each of those that evaluate.
    bool isTold(bool isEvaluation) {
      return getOtherRanges() || (getVersions() && !isEvaluation);
    }
    /// Whether weights that a task reads may be there.
    bool mayBeRead(BufferAttr range);
    /// A bucket of the weights: where it begins in their range, and its bytes.
    struct Bucket {
      int64_t begin, bytes;
    };
    /// All of them; one, if the ranges are not cut into several.
    llvm::SmallVector<Bucket> bucketsOfWeights();
    /// The one that has the weight at `place`.
    Bucket bucketAround(BufferAttr place);
    /// What a bucket has of a flat range, or, of what a replica has a part of
    /// alone (states, `kept`, `home`), of that.
    BufferAttr partOf(BufferAttr range, Bucket bucket);
    /// The same of the one that a collective is of, or all of the range.
    BufferAttr partOf(BufferAttr range, std::optional<uint64_t> bucket);
    /// The part of a flat range, as large as the weights or half as large, that
    /// belongs to a weight at `place` among them. Of what a replica has a part
    /// of alone: where that would be if that of the first replica went on.
    BufferAttr partOf(BufferAttr range, BufferAttr place);
    /// Whether a range has bf16 copies.
    bool isRounded(BufferAttr range);
    /// Whether the weight at `place` is a matrix that is taken as a whole.
    bool takesAsMatrix(PlaceOp place);
    /// The replica in whose part a weight begins.
    int64_t replicaOf(BufferAttr place);
    /// What each of `kernels` updates, as a bucket of the weights; nothing where
    /// there are only matrices.
    llvm::SmallVector<Bucket> bucketsOfKernels();
    /// 1 if replicas do not share the update.
    int64_t countShards() { return getShards().value_or(1); }
    /// The bytes of the range that a replica updates.
    int64_t getShardBytes() {
      return getWeights().getBytes() / countShards();
    }
  }];
  let hasVerifier = 1;
}

def Pipe_RegionOp : Pipe_Op<"region", [HasParent<"ArenaOp">]> {
  let summary = "What a range of the arena is for, as people are told";
  let description = [{
    Example:
    ```mlir
    pipe.region "activations" #pipe.buffer<arena 0 at 256 bytes 1024>
    ```
  }];
  let arguments = (ins StrAttr:$name, Pipe_BufferAttr:$buffer);
  let assemblyFormat = "$name $buffer attr-dict";
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEBUFFER_TD
