//===- Passes.td - passes that make the scheduled level -----*- tablegen -*-===//
//
// Part of passes/pipe/Passes.td.
//
//===----------------------------------------------------------------------===//

def PipeSchedule : Pass<"pipe-schedule", "::mlir::ModuleOp"> {
  let summary = "Place the stages and order the tasks of each rank";
  let description = [{
    Asks the policy for the rank of each stage and the order of each rank's
    tasks. Writes `on rank` of the stages and sorts the ops of each step: those
    of one rank stand in the order in which that rank runs them. Under a
    schedule with stale weights tasks get the `version` that they read, and
    updates stand where the schedule has them; the first task of a pair that the
    schedule means to run together gets `overlaps_next`. Stashes that the schedule
    moves to other ranks and back (BPipe) are held there (`pipe.hold`); those that
    live on the host (`offload`) are copied there and back (`pipe.move`). In
    evaluation each rank prefers its deepest stage that has something to do, so
    that few results wait.

    Of a stage that keeps the stashes of some micro-batches (`keeps`), the order
    says how many are in flight: so many are a window, and the micro-batches of
    each that do not keep theirs get a recompute task, whose stash is read in
    place of their forward's.

    Where the schedule has an I and a W task, they replace the backward task;
    `pipe-split-backward` must have run. Gradients of a stage stay summed in
    ascending order of micro-batches, unless the policy says that it does not
    keep to that: then they are summed in the order of the schedule, and the
    module gets `sums_in_schedule_order`.

    Idempotent. Refuses modules whose steps are split into ranks already, and
    whole backwards where an earlier run split them.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"\"",
           "Name of the schedule (default: the module's, else 1f1b)">,
    Option<"ranks", "ranks", "int64_t", "0",
           "Number of ranks (default: the module's, else 1)">,
    Option<"offload", "offload", "std::string", "\"none\"",
           "Which stashes live in the host's memory: none, auto, or at most a "
           "share of each rank's (50%)">
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeShareGradients
    : Pass<"pipe-share-gradients", "::mlir::ModuleOp"> {
  let summary = "Let stages of a rank take turns in the memory of gradients";
  let description = [{
    Changes steps of modules with `zero`. With 2 or 3 (ZeRO-2; Rajbhandari et
    al., 2020) the stages of a rank take turns in `ranges` ranges for their
    gradients: the n-th one to go backward has range n modulo `ranges`. When
    another stage begins to add to the range of a stage, that one

    - updates first, if its backwards are over, so that breadth-first schedules
      sum each stage over replicas once, with the bits that it has without;
    - otherwise has what it has so far summed over replicas, and keeps its part
      of the sum (`pipe.keep_gradients`): interleaved schedules do so once for
      each group of micro-batches that they run together. Sums then round
      differently, as those of a group are added over replicas before the next
      group's.

    Between its last backward of a turn and there its sum runs beside tasks.
    `pipe-plan-memory` gives stages the same bytes that are not in use at one
    time. Nothing is kept where that saves nothing: on ranks with no more stages
    than `ranges`, and where parts that are kept, and what others send to add to
    them, take as many bytes.

    With 1, and where nothing is kept, those that would update first still do: the
    weights that replicas have updated are gathered beside backwards of other
    stages, not all at the end of the step.

    Stages that hold a weight together with others have ranges of their own and
    update at the end; so do all with two copies of the model, and where
    gradients are clipped.

    ```mlir
    %r2 = pipe.collective reduce_scatter in @s2 (%g2) over replicas : ...
    %u2 = pipe.task update @s2 (%r2) : ...                // moved here
    %dx, %g0 = pipe.task backward @s0 micro_batch 0 (...)
    ```
    ```mlir
    %r2 = pipe.collective reduce_scatter in @s2 (%g2) over replicas : ...
    %k2 = pipe.keep_gradients in @s2 (%r2) : !pipe.gradient<@s2, split>
    %dx, %g0 = pipe.task backward @s0 micro_batch 0 (...)
    %dy, %h2 = pipe.task backward @s2 micro_batch 2 (..., %k2)
    ```
  }];
  let options = [
    Option<"ranges", "ranges", "int64_t", /*default=*/"2",
           "gradients of how many stages a rank keeps">,
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeFoldGradients
    : Pass<"pipe-fold-gradients", "::mlir::ModuleOp"> {
  let summary = "Make sums of gradients independent of the number of replicas";
  let description = [{
    Divides the micro-batches of all replicas into `groups` groups that follow
    each other. Within a group gradients are added in the order of
    micro-batches, and groups as a binary tree: where a replica has several,
    what each of its stages has added is folded behind a group's last backward
    (`pipe.fold_gradients`). So a step has the same bits for each number of
    replicas that divides `groups`, for the same micro-batches of all together.

    A stage needs memory for as many sums more as the binary logarithm of the
    groups of a replica. With as many groups as replicas, and with 0, nothing
    changes.

    Changes the programs of ranks. Refuses schedules that add in another order
    (`sums_in_schedule_order`, two copies of the model, several updates in a
    step), weights that an owner updates for other stages, where a replica has
    several groups, weights whose holders add before replicas do, and stages
    that keep parts of sums (ZeRO-2 where it sums a stage more than once).

    ```mlir
    %g1 = pipe.task backward @s0 micro_batch 1 (..., %g0)
    %g2 = pipe.task backward @s0 micro_batch 2 (..., %g1)
    ```
    ```mlir
    %g1 = pipe.task backward @s0 micro_batch 1 (..., %g0)
    %f0 = pipe.fold_gradients in @s0 (%g1) group 0 of 2 : !pipe.gradient<@s0>
    %g2 = pipe.task backward @s0 micro_batch 2 (..., %f0)
    ```
  }];
  let options = [
    Option<"groups", "groups", "int64_t", /*default=*/"0",
           "Groups of micro-batches, of all replicas">,
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeInterleaveSums
    : Pass<"pipe-interleave-sums", "::mlir::ModuleOp"> {
  let summary = "Begin to sum buckets of gradients inside the last backward";
  let description = [{
    Where sums over replicas of all buckets of a stage (`bucket_size` of
    `#pipe.program`) stand right behind the backward that makes the gradients,
    or its weight half, runs that in parts (`pipe.resume`), and puts each sum
    behind the part with which its bucket is whole. The sum of the last one
    stays behind the task.

    Changes the programs of ranks. Leaves tasks alone that overlap the next one,
    whose gradients are added to others first (`pipe.fold_gradients`, weights of
    several stages), or behind which another collective comes first.

    ```mlir
    %g = pipe.task backward @s0 micro_batch 1 (..., %g0)
    %0 = pipe.collective all_reduce bucket 0 in @s0 (%g) over replicas ...
    %1 = pipe.collective all_reduce bucket 1 in @s0 (%0) over replicas ...
    ```
    ```mlir
    %g = pipe.task backward @s0 micro_batch 1 parts 2 (..., %g0)
    %0 = pipe.collective all_reduce bucket 0 in @s0 (%g) over replicas ...
    %r = pipe.resume in @s0 (%0) part 1 : !pipe.gradient<@s0>
    %1 = pipe.collective all_reduce bucket 1 in @s0 (%r) over replicas ...
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeGatherWeights
    : Pass<"pipe-gather-weights", "::mlir::ModuleOp"> {
  let summary = "Put weights together where tasks read them, or only for these";
  let description = [{
    Changes steps in which replicas update a part each of the weights. Behind
    the updates that end a step nothing is left to run beside gathers. So those
    of stages that a rank reads behind its first task begin the next step
    (`pipe.load_weights in_place`), in the order in which they are read, beside
    the tasks of stages before, and so in evaluation.

    With `zero` 3 (ZeRO-3; Rajbhandari et al., 2020) a replica keeps its part of
    a stage's weights elsewhere from step to step, and the stages of a rank take
    turns in at most `ranges` ranges: for tasks that read them the weights of a
    stage are loaded there (`pipe.load_weights`) and gathered over replicas, in
    training and in evaluation. That begins when the last task is over that
    reads what was there before, so that it runs beside tasks of stages in other
    ranges. Updates work on the part, and nothing is gathered behind them.

    Of all ways to give each stage a range that save memory the one is taken
    that gathers the fewest bytes, then the one with the fewest gathers that no
    task runs beside, then the one with the smallest ranges; with more than 4096
    ways, stages have them in turns, as they first run. Where fewer bytes are
    gathered if stages take any range with room for them, the one whose weights
    are not read for the longest time (Belady, 1966), loads say which one it is
    (`range`); not where a stage reads some weights in f32 and bf16 copies of
    others. Halves of backwards that read no weights need none.

    Stages whose weights an owner hands on to others keep them whole, and so do
    all with two copies of the model. Ranks where ranges and parts would take as
    much as the whole weights, whatever the way, are as with less of `zero`:
    those with no more stages than `ranges`, with few replicas, or with stages of
    very different sizes.

    ```mlir
    %h, %st = pipe.task forward @s0 micro_batch 1 (%x) : ...
    ```
    ```mlir
    %l = pipe.load_weights in @s0 : !pipe.updated<@s0, split>
    %w = pipe.collective all_gather in @s0 (%l) over replicas : ...
    %h, %st = pipe.task forward @s0 micro_batch 1 (%x, %w) : ...
    ```
  }];
  let options = [
    Option<"ranges", "ranges", "int64_t", /*default=*/"2",
           "weights of how many stages a rank has whole at one time">,
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeSynchronizeWeights
    : Pass<"pipe-synchronize-weights", "::mlir::ModuleOp"> {
  let summary = "Keep all copies of a weight equal";
  let description = [{
    Unrolling lets each stage update from its own gradients alone. A weight that
    several stages hold gets a policy here:

    - `owner`: its gradients are sent to the first of them and added to that
      one's, in the order of the stages; it updates and sends the new value
      back.
    - `all-reduce`: stages on different ranks sum its gradients together
      (`pipe.collective`) and update a copy each: one sum's time between the
      last backward and the next step, in place of that of the gradients to the
      owner, the owner's update, and the new weight back. Costs each holder the
      optimizer's state of the weight. All bits are those of the owner's way.

    Option `tied` says which of them. Weights keep their owner where a rank
    holds several copies of one: there is nothing to send between these, and
    with copies elsewhere the order of the stages is no order of ranks. Stages
    of two copies of the model sum their gradients as one range, where the
    copies are all that holds their weights.

    Where a module has several `replicas`, all gradients that an update uses are
    summed over them, bucket by bucket, before stages that hold a weight sum
    what they have; those of two copies of the model do it before, unless
    `copies-last`. A stage whose weight an owner updates sums that weight's
    gradient over replicas on its own. So all replicas do the same update, to the bit. Running
    statistics, of which each replica has its own, become one behind the sums
    (`pipe.merge_statistics`). Refuses these in steps with several updates.

    With `zero` 1 (ZeRO-1; Rajbhandari et al., 2020) a replica gets the sums of
    its part of the range, unless gradients are clipped, which takes all of
    them; it updates that part, and the replicas gather the new weights, or what
    tasks read of them in bf16; a collective for each bucket: matrices that an
    optimizer takes as a whole are one of their own, in which each replica has
    some. What two copies of the model sum then is that part of each bucket.
    Refuses steps with several updates, and optimizers that need all weights
    whole. With `zero` 2, `pipe-share-gradients`
    goes on from there.

    All sums come before all updates; in a step with several updates each sum
    over replicas comes before its own. Gives weights that it all-reduces
    `pipe.all_reduced`. Changes nothing where a step has sums already.

    ```mlir
    %u0 = pipe.task update @s0 (%g0) : ...
    // owner
    %t1 = pipe.gradient_of @wte in @s1 (%g1) : ...
    %sum = pipe.add_gradient @wte in @s0 (%g0, %t1) : ...
    %u0 = pipe.task update @s0 (%sum) : ...
    %new = pipe.weight_of @wte in @s0 (%u0) : ...
    pipe.set_weight @wte in @s1 (%new, %g1) : ...
    // all-reduce
    %sum0 = pipe.collective all_reduce of @wte in @s0 (%g0) over [0, 1] : ...
    %sum1 = pipe.collective all_reduce of @wte in @s1 (%g1) over [0, 1] : ...
    %u0 = pipe.task update @s0 (%sum0) : ...
    %u1 = pipe.task update @s1 (%sum1) : ...
    // over replicas, before these
    %all0 = pipe.collective all_reduce in @s0 (%g0) over replicas : ...
    %sum0 = pipe.collective all_reduce of @wte in @s0 (%all0) over [0, 1] : ...
    %u0 = pipe.task update @s0 (%sum0) : ...
    // before an owner adds
    %all1 = pipe.collective all_reduce of @wte in @s1 (%g1) over replicas : ...
    %t1 = pipe.gradient_of @wte in @s1 (%all1) : ...
    // or, with ZeRO-1
    %part0 = pipe.collective reduce_scatter in @s0 (%g0) over replicas : ...
    %sum0 = pipe.collective all_reduce of @wte in @s0 (%part0) over [0, 1] : ...
    %new0 = pipe.task update @s0 (%sum0) : ...
    %u0 = pipe.collective all_gather in @s0 (%new0) over replicas : ...
    ```
  }];
  let options = [
    Option<"tied", "tied", "std::string", /*default=*/"\"all-reduce\"",
           "all-reduce or owner: how weights that stages share are kept equal">,
    Option<"copiesLast", "copies-last", "bool", /*default=*/"false",
           "Whether two copies of the model add up what replicas have summed: "
           "for links that need not add in one order">
  ];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipePrintTimetable : Pass<"pipe-print-timetable", "::mlir::ModuleOp"> {
  let summary = "Draw the order of a training step";
  let description = [{
    Prints one comment line per rank, with one column per slot, all forwards
    and backwards taking one slot. Changes nothing.

    ```
    // rank 0 | F0 F1    B0    B1
    // rank 1 |    F0 B0 F1 B1
    ```
  }];
}

def PipeInsertTransfers : Pass<"pipe-insert-transfers", "::mlir::ModuleOp"> {
  let summary = "Split steps into one program per rank, with transfers";
  let description = [{
    Replaces each `pipe.step` by `pipe.rank` ops. A value that another rank
    needs is posted, received and waited for, and each part of a
    `pipe.collective` posted and waited for, where `schedules::orderWork` says:
    posted as soon as what it takes is there, in one order for all ranks, and
    waited for before the first task that takes what it makes. Where each stage
    has one update, that is no later than the first of those that end the rank's
    step: all its gradients are whole then, and none is on its way when it is
    cleared. Ops that neither
    take time nor wait for another rank stand before what takes what they make.

    Tasks may wait for collectives whoever needs them. Where tasks and
    collectives wait for each other the step is refused, with the ranks that
    would wait.

    Idempotent: without steps there is nothing to do.

    ```mlir
    %h = pipe.task forward @s0 micro_batch 0 (%x) : ...
    %g = pipe.task forward @s1 micro_batch 0 (%h) : ...
    // becomes
    pipe.rank 0 train {
      %h = pipe.task forward @s0 micro_batch 0 (%x) : ...
      %p = pipe.post_send %h to 1 : ...
      pipe.wait_send %p to 1 : ...
    }
    pipe.rank 1 train {
      %p = pipe.post_receive from 0 : ...
      %h = pipe.wait_receive %p from 0 : ...
      %g = pipe.task forward @s1 micro_batch 0 (%h) : ...
    }
    ```
  }];
  let dependentDialects = ["::pipewright::pipe::PipeDialect"];
}

def PipeVerifySchedule : Pass<"pipe-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the scheduled level";
  let description = [{
    Contract: every task is run once, on the rank of its stage; gradients are
    summed as `pipe-verify-unrolled` demands; on each directed link sends and
    receives are the same tensors in the same order; all members of a group do
    the same together in the same order, and use what they make only when it is
    there; and all ranks reach their end even if no send is ever buffered.

    A refusal tells which rank waits where, for what, from whom.
  }];
}
