//===- Passes.td - passes over pipe ops --------------------*- tablegen -*-===//
//
// One entry per pass. The flag pipe-x-y is implemented in XY.cpp and tested in
// test/passes/pipe/x-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_PASSES_TD
#define PIPEWRIGHT_PASSES_PIPE_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Import level -> staged level
//===----------------------------------------------------------------------===//

def PipePartitionStages : Pass<"pipe-partition-stages", "::mlir::ModuleOp"> {
  let summary = "Cut the model into stages";
  let description = [{
    Turns `func.func @model`, whose first result is the loss, into `stages`
    stages, each with a `pipe.forward` and a `pipe.evaluate`, and erases it.

    *What is cut.* The function's ops in their order, without those that every
    stage repeats for itself: reads of weights, constants, pointwise and shape
    ops that depend only on these and on model inputs (mask arithmetic), and
    views. A cut goes between two of the remaining ops; every stage gets at
    least one *layer*, that is a library op that combines two tensors, unless
    there are more stages than layers.

    *Where.* Among all cuts whose most expensive stage is at most 5 % above the
    least possible, the one that sends the fewest bytes. The cost of a stage is
    its number of layers (`uniform`), its trained parameters (`parameters`) or
    its floating point operations (`flops`); with `memory`, the bytes of its
    weights, gradients and optimizer states, and for each micro-batch that 1F1B
    has in flight there, of what its gradients need; with `time`, the seconds
    that `pipe.layer_times` says for its modules. `step` counts operations, or
    the seconds that `pipe.op_seconds` says for each op. Others' algorithms
    (passes/planning/PeerPartitions.h) cut between modules as well.

    *What is sent.* A value that several stages use is returned once for each of
    them. Only what the loss and the updates of state need stands in
    `pipe.forward`; ops that only other model outputs need stand in
    `pipe.evaluate`, which reports these outputs too. Results that only
    evaluation sends follow after those of the forward.

    Not idempotent: there is no function left to cut.

    ```mlir
    func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, ...)
        -> (tensor<f32> {nn.name = "loss"}) { ... }
    // becomes
    pipe.stage @s0 {
      pipe.forward sources [#pipe.input<"x">] { ... }
      pipe.evaluate sources [#pipe.input<"x">] { ... }
    }
    pipe.stage @s1 {
      pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"targets">] ...
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "Number of stages">,
    Option<"balance", "balance", "std::string", "\"flops\"",
           "What stages get equal shares of: uniform (layers), parameters, "
           "flops, step (flops, or pipe.op_seconds, for the shortest step of 1f1b), "
           "scopes (flops, "
           "with modules whole), memory, time:FILE (of pipe.layer_times), "
           "type:REGEX (nodes whose name or op matches); or manual:N,N,... (the "
           "layers of each), annotated[:NAME] (the stages of "
           "nn.configurations), deepspeed-uniform, deepspeed-parameters, "
           "torchgpipe-size, torchgpipe-time:FILE">,
    ListOption<"memoryLimit", "memory-limit", "int64_t",
           "The bytes of weights, gradients, states and kept values that no "
           "stage exceeds under 1f1b, of balance step: one number for all "
           "stages, or one for each; none is no limit">,
    ListOption<"rankOfStage", "rank-of-stage", "int64_t",
           "Where each stage of each copy of the model will be, on a machine "
           "whose ranks are not alike; without it they go round the ranks">
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeDifferentiate : Pass<"pipe-differentiate", "::mlir::ModuleOp"> {
  let summary = "Build the backward of each stage";
  let description = [{
    Builds `pipe.backward` from the vector-Jacobian products of the forward's
    ops, in reverse order, beginning with `1 / M` at the loss (M is the module's
    `micro_batches`, or the share of one update where there are several, times
    its `replicas`) and with the gradients of the results that later
    stages send back. Gradients of a value with several uses are added in that
    same order. What the backward needs of the forward becomes a saved input,
    a saved output or a stash value; weights, constants, views, and of what is
    saved anyway masks, permutations and cheap element ops that kernels read
    are repeated instead; with `repeat=pointwise` all element ops of it, also
    where the gradient of a weight reads the result (a product, a convolution).
    Where a value is split, its gradient is the parts' gradients side by side;
    where one matrix is multiplied by few rows at a time, its gradient is one
    product of all.

    A stage gets a backward if and only if a gradient reaches it that one of its
    parameters or one of the stages before it needs.

    Idempotent: stages that have a backward are left alone.

    ```mlir
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x8xf32>):
      %w = nn.parameter @w : tensor<8x2xf32>
      %y = nn.matmul %x, %w : ...
      pipe.return %y : tensor<4x2xf32>
    }
    // gets
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%in0: tensor<4x8xf32>, %d_out0: tensor<4x2xf32>):
      %dw = nn.matmul %in0, %d_out0 transpose_a : ...
      nn.accumulate_gradient @w, %dw : tensor<8x2xf32>
      pipe.return
    }
    ```
  }];
  let options = [
    Option<"repeat", "repeat", "std::string", "\"cheap\"",
           "What is computed again instead of being kept: cheap (what takes "
           "less time than to write and read it), or pointwise (all element "
           "ops of what is kept); one for all stages, or a list">,
    Option<"keepGelu", "keep-gelu", "bool", "false",
           "Keep GELU by tanh, which epilogues of products may compute: not to "
           "the bit as kernels do">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect",
                           "::pipewright::pipe::PipeDialect"];
}

def PipeHoistLossGradient
    : Pass<"pipe-hoist-loss-gradient", "::mlir::ModuleOp"> {
  let summary = "Compute the gradient of cross entropy in the forward";
  let description = [{
    The gradient of the logits depends on the forward alone. It moves there and
    is stashed in place of the logits and their row sums, so that one kernel
    makes the loss and its gradient in one pass over the logits. Same ops on the
    same values: no number changes.

    Idempotent: a backward without such an op is left alone.

    ```mlir
    pipe.return stash %logits, %largest, %sum : tensor<64x512xf32>, tensor<64xf32>, tensor<64xf32>
    // becomes
    %d = nn.softmax_cross_entropy_backward %c, %logits, %targets, %largest, %sum ...
    pipe.return stash %d : tensor<64x512xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect",
                           "::pipewright::pipe::PipeDialect"];
}

def PipeRematerialize : Pass<"pipe-rematerialize", "::mlir::ModuleOp"> {
  let summary = "Recompute in the backward what is too large to keep";
  let description = [{
    `full` puts a copy of the forward's body, without its effects on state, at
    the beginning of each backward; only the inputs that the copy reads stay
    saved, and the stash is empty. `every:N` keeps what each N layers give to
    the next ones, and computes the rest again where it is read first, so that a
    backward has room for the values of N layers at a time; a layer is a module
    with a number (`h.3`), or a product where a model has no modules. `keep:N`
    takes at most N percent of the bytes that the backward reads of its forward,
    of all micro-batches that 1F1B has in flight, with what is computed again of
    a layer, or a few, at a time, if any choice does: it keeps those values with
    which it takes the least time, on the module's machine, to compute the
    others again where they are read first. `selective` computes again what
    attention makes of q, k and v, and keeps all else. `window:N` keeps whole stashes of N
    micro-batches at a time, of as many as the stage has in flight, and
    `except-last` that of the last micro-batch: the stage gets a
    `pipe.recompute` that makes the stash of the forward again from its inputs,
    in tasks of its own for all other micro-batches, and says which these are
    (`keeps`). The copied ops are the same ops with the same
    kernels, so all numbers stay the same bits. `none` changes nothing.

    Idempotent: a backward that keeps nothing but inputs is left alone.

    ```mlir
    pipe.return %y : tensor<4x8xf32> stash %h : tensor<4x32xf32>
    // becomes
    pipe.return %y : tensor<4x8xf32>
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"full\"",
           "What is recomputed: none, full (all but the stage's inputs), "
           "selective (what attention makes of q, k and v), keep:N "
           "(what takes the least time within N percent of the bytes), "
           "every:N (all but what N layers give to the next), window:N (as "
           "full, but of N micro-batches at a time nothing) or except-last (of "
           "the last micro-batch nothing); one for all stages, or a list">
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeSplitRecompute : Pass<"pipe-split-recompute", "::mlir::ModuleOp"> {
  let summary = "Cut off what a backward computes before it needs a gradient";
  let description = [{
    Adds to each stage whose backward begins with what needs no gradient of its
    results a `pipe.recompute` with these ops: the forward again, where
    `pipe-rematerialize` has run, or the begin of that, up to the first op that
    reads a gradient. What the rest reads of it is handed over. A rank runs it
    while it waits for the gradients.

    Ops, their order and their kernels stay, so no bit changes. A stage whose
    backward reads no gradient, the one with the loss, is left alone.

    Idempotent: stages that have one are left alone.

    ```mlir
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>):
      %h = nn.relu %x : tensor<4x8xf32>
      %dx = nn.mul %dy, %h : ...
    // becomes
    pipe.recompute inputs [0] outputs [] stash [] {
    ^bb0(%x: tensor<4x8xf32>):
      %h = nn.relu %x : tensor<4x8xf32>
      pipe.return stash %h : tensor<4x8xf32>
    }
    pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%dy: tensor<4x8xf32>, %h: tensor<4x8xf32>):
      %dx = nn.mul %dy, %h : ...
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeSplitBackward : Pass<"pipe-split-backward", "::mlir::ModuleOp"> {
  let summary = "Cut each backward into input and weight gradients";
  let description = [{
    Adds to each stage with a backward its two halves. `pipe.input_gradient`
    holds the ops that the returned gradients depend on; `pipe.weight_gradient`
    all others, which end in `nn.accumulate_gradient`. What the first computes
    and the second reads is handed over, a second stash; constants, weights,
    views, and masks and permutations of what is there anyway are repeated
    instead. Of the forward's stash and of the gradients of its results each
    half reads what it needs itself. So a stash is kept in two ranges
    (`splits_stash`), the memory of one of which is free behind the first half;
    `whole-stash` leaves it in one, which can be moved.

    Ops, their order and their kernels stay, so the halves compute the bits of
    the whole, which stays too: schedules may run it for some micro-batches. A
    stage whose inputs need no gradient has an empty first half, one without
    weights an empty second one.

    Idempotent: stages that have halves are left alone.

    ```mlir
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%x: tensor<4x8xf32>, %dy: tensor<4x2xf32>):
      %w = nn.parameter @w : tensor<8x2xf32>
      %dx = nn.matmul %dy, %w transpose_b : ...
      %dw = nn.matmul %x, %dy transpose_a : ...
      nn.accumulate_gradient @w, %dw : tensor<8x2xf32>
      pipe.return %dx : tensor<4x8xf32>
    }
    // gets
    pipe.input_gradient inputs [] outputs [] stash [] gradients_of [0]
        input_gradients [0] {
    ^bb0(%dy: tensor<4x2xf32>):
      %w = nn.parameter @w : tensor<8x2xf32>
      %dx = nn.matmul %dy, %w transpose_b : ...
      pipe.return %dx : tensor<4x8xf32>
    }
    pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
    ^bb0(%x: tensor<4x8xf32>, %dy: tensor<4x2xf32>):
      %dw = nn.matmul %x, %dy transpose_a : ...
      nn.accumulate_gradient @w, %dw : tensor<8x2xf32>
      pipe.return
    }
    ```
  }];
  let options = [
    Option<"wholeStash", "whole-stash", "bool", "false",
           "Keep each stash in one range">
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeMirrorStages : Pass<"pipe-mirror-stages", "::mlir::ModuleOp"> {
  let summary = "Make a second copy of every stage, for the other direction";
  let description = [{
    For schedules that run two copies of the model at once (DualPipe, Chimera).
    Each stage is followed, behind all others, by one that `mirrors` it: the
    same forward and backward, fed by the copy's own stages. The first half of
    the micro-batches trains the first copy, the second half the second.
    Weights that both copies train are tied from here on
    (`pipe-synchronize-weights`). Dropout draws by micro-batch and op, so it
    does not depend on the copy. Evaluation goes through the first copy only and
    is not copied.

    Refuses stages with running statistics: each copy would collect them from
    half of the micro-batches, and no order of the two gives what one copy
    collects.

    Idempotent: stages that are mirrored are left alone.

    ```mlir
    pipe.stage @s0 { ... }
    pipe.stage @s1 { pipe.forward sources [#pipe.output<@s0, 0>] ... }
    // gets
    pipe.stage @s2 mirrors @s0 { ... }
    pipe.stage @s3 mirrors @s1 { pipe.forward sources [#pipe.output<@s2, 0>] ...
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeVerifyStaged : Pass<"pipe-verify-staged", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the staged level";
  let description = [{
    Contract: the model is a list of stages whose bodies hold nn and call ops
    only, whose sources are model inputs or results of earlier stages, each
    result with exactly one use of the same type; exactly one stage of each copy
    of the model reports the loss, and no copy uses results of another; and
    every gradient that a backward returns is one that the producing stage's
    backward takes. Halves of a backward return and take what the whole does.
    Kernels, where there are any, are functions of tensors of static shapes.
    Names, sizes of tensors and counted labels are as nn-verify-imported has
    them.

    Reports every violation, not only the first.
  }];
}

//===----------------------------------------------------------------------===//
// Staged level -> unrolled level
//===----------------------------------------------------------------------===//

def PipeUnrollMicrobatches
    : Pass<"pipe-unroll-microbatches", "::mlir::ModuleOp"> {
  let summary = "Write out the tasks of every micro-batch";
  let description = [{
    Makes `pipe.step train` and, where stages can be evaluated, `pipe.step
    evaluate`, with one task per stage, direction and micro-batch (the module's
    `micro_batches`). Every dependence is an operand. The gradients of a
    stage go through its backward tasks in ascending order of micro-batches.
    Each stage updates the weights that it owns from its own gradients alone;
    `pipe-synchronize-weights` adds what keeps other copies equal. Where stages
    mirror others, each is run for the micro-batches of its copy; with several
    `updates` in a step, an update of every stage follows each share of the
    micro-batches, and no weight may be tied.

    Idempotent: a module that has steps is left alone.

    ```mlir
    pipe.step train {
      %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
      %h, %st = pipe.task forward @s0 micro_batch 0 (%x) : ...
      %g = pipe.task backward @s0 micro_batch 0 (%x, %st, %dh) : ...
      %u = pipe.task update @s0 (%g) : ...
    }
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeVerifyUnrolled : Pass<"pipe-verify-unrolled", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the unrolled level";
  let description = [{
    Contract: a step holds every task of every micro-batch once (a backward may
    be there in halves), each reads exactly what its stage's body says, and
    gradients are summed in ascending order of micro-batches, or, if the module
    says `sums_in_schedule_order`, in any order.

    Reports every violation, not only the first.
  }];
}

//===----------------------------------------------------------------------===//
// Unrolled level -> scheduled level
//===----------------------------------------------------------------------===//

include "passes/pipe/scheduled/Passes.td"

//===----------------------------------------------------------------------===//
// Scheduled level -> allocated level
//===----------------------------------------------------------------------===//

def PipeAccumulateInKernels
    : Pass<"pipe-accumulate-in-kernels", "::mlir::ModuleOp"> {
  let summary = "Let kernels add their sums to gradients";
  let description = [{
    Where `nn.accumulate_gradient` alone reads a sum over rows that a compiled
    kernel ends in, the launch gets `nn.added`, the numbers of such results, and
    so do these results of the kernel: it adds the sum to what stands there. The
    sum is complete before it is added, so the numbers are those of two steps. A
    kernel that other launches use without adding is copied. For GPUs, where each
    launch costs some microseconds; the CPU's kernels do not know the attribute.

    Idempotent.

    ```mlir
    %b = nn.launch @kernels::@bias_gradient(%dy) : (tensor<64x32xf32>) -> tensor<32xf32>
    nn.accumulate_gradient @bias, %b : tensor<32xf32>
    // becomes
    %b = nn.launch @kernels::@bias_gradient(%dy) {nn.added = array<i64: 0>}
        : (tensor<64x32xf32>) -> tensor<32xf32>
    nn.accumulate_gradient @bias, %b : tensor<32xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

def PipePlanMemory : Pass<"pipe-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every value its bytes in the arena of its rank";
  let description = [{
    Makes one `pipe.arena` per rank. Its fixed part holds weights, gradients and
    optimizer state; what the optimizer of a stage updates is one flat range in
    each, with room for the old versions that are in use at one time. Then come
    the values of the rank's program, packed by their lives,
    then the workspace, which the bodies of all stages share. Evaluation uses
    the space of training. Every buffer is aligned to 64 bytes.

    A value of a body that leaves it is written where it leaves to: the task's
    result, its stash or its handover. Where one value would need two places,
    `pipe.copy` is inserted. Bodies that no task runs are left alone.

    With `link-buffers` what goes over a directed link has bytes that nothing
    else has: as many buffers as are in use at a time, and so many more, which
    take turns. Where transfers and tasks run beside each other, a receive can
    then be posted without waiting for a task that has just begun or for what
    another link sends. Where more than 16 are in use at a time, they share
    bytes with other values, but with none that is in use since the receive that
    is so many before was posted, or before that send is over which comes so
    many later.

    Idempotent. The same module gives the same plan.
  }];
  let options = [
    Option<"linkBuffers", "link-buffers", "int64_t", /*default=*/"0",
           "Spare buffers of each directed link; 0: its values may share bytes "
           "with any others">,
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeAttachOptimizerKernels
    : Pass<"pipe-attach-optimizer-kernels", "::mlir::ModuleOp"> {
  let summary = "Give each stage's update its kernels";
  let description = [{
    Builds, for each `pipe.optimizer` without a kernel, the one that fits the
    module's optimizer and the size of the flat ranges, in `@kernels`;
    where the optimizer works weight by weight, one for each updated
    `pipe.place` instead. Copies of tied weights that their owner sets get the
    kernel that rounds them to bf16.

    Idempotent: who has a kernel keeps it.

    ```mlir
    pipe.optimizer @s0 weights #pipe.buffer<arena 0 at 0 bytes 64> ...
    // becomes
    pipe.optimizer @s0 kernels [@kernels::@sgd_16] weights ...
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::pipewright::nn::NNDialect"];
}

def PipeVerifyAllocated : Pass<"pipe-verify-allocated", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the allocated level";
  let description = [{
    Contract: every value has a buffer of its size inside the arena, and every
    read finds what was written for it; what an op writes touches neither what
    it reads nor what a transfer reads or writes meanwhile, nor a weight. Stages
    may have the same bytes for gradients that are kept or updated from before
    others are added there, and for weights that are loaded again before they
    are read.

    Runs each program symbolically, and so knows nothing of how the plan was
    made. The first violation of each rank is reported.
  }];
}

def PipeAssignStreams : Pass<"pipe-assign-streams", "::mlir::ModuleOp"> {
  let summary = "Order the work of a rank's streams by events";
  let description = [{
    For targets with streams. Every op runs on the stream `compute`, except that
    each directed link has a stream of its own, and so have the collectives of
    the rank: transfers and collectives run there, one after the other. Streams run at the same time, so whatever shares bytes across
    them, and of which one writes, is ordered by an event: recorded behind the
    first op, waited for before the second.

    Each of them has an event of its own, which says that it is over. Any other
    op has one if something waits for it. No wait is implied by others. Events
    are numbered from 0 in each program, in the order in which they are recorded.

    `pipe.wait_send`, `pipe.wait_receive` and `pipe.wait_collective` stay, but
    make no stream wait: they say from where on a stream may wait for it, so that no stream, and no
    host that follows it, waits where the plan was not proved free of deadlock.
    At the end of a program the host waits for all streams, so nothing crosses
    from one step to the next.

    Idempotent: what an earlier run assigned is taken away first. The same
    module gives the same events.

    ```mlir
    %y = pipe.task forward @s0 micro_batch 0 (%x) ...
    %p = pipe.post_send %y to 1 : ...
    // becomes
    %y = pipe.task forward @s0 micro_batch 0 (%x) ...
    pipe.record_event 0 on compute
    pipe.wait_event 0 on send to 1
    %p = pipe.post_send %y to 1 event 1 : ...
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeVerifyStreams : Pass<"pipe-verify-streams", "::mlir::ModuleOp"> {
  let summary = "Prove that the streams of a rank do not race";
  let description = [{
    Contract: of two ops on different streams that use the same byte, and of
    which one writes it, the program's streams and events order one before the
    other; every event is recorded once, before it is waited for; and no stream
    waits for a transfer or a collective before the op that waits for it, with
    which the plan was proved free of deadlock.

    Runs each program symbolically with vector clocks, and so knows nothing of
    how events were assigned. The first violation of each program is reported: a
    race with its rank, both ops, their streams and the bytes.
  }];
}

#endif // PIPEWRIGHT_PASSES_PIPE_PASSES_TD
