#!/usr/bin/env python3
"""Writes the schedules of PyTorch's own classes, in PyTorch's own CSV.

    python3 tools/reference/make_pytorch_schedules.py test/Inputs/schedules
    python3 tools/reference/make_pytorch_schedules.py --load FILE.csv...

The second has PyTorch load files that others wrote, as `pipewright check FILE
--write FILE.csv` does.

For each class and size below two files: `NAME.compute.csv`, the order of tasks
with its idle steps (`compute_only`), and `NAME.comms.csv`, what PyTorch's
runtime makes of it with every send and receive (`compute_comms`). A name is
CLASS_pRANKS_vSTAGES-PER-RANK_mMICRO-BATCHES. Needs torch (made with 2.15); the
tests do not.

Two folders below hold what is wrong, for `pipewright check` to refuse:

- `deferred/NAME.deferred.csv`: lowerings with `defer_pp_recv=True`, which puts
  each receive next to its consumer. Where activations and gradients share a
  directed link, sends and receives are then in different orders, so that a rank
  computes with the wrong tensors. Here are sizes where that is so; `main` makes
  sure of it.
- `issue-172668/deferred.csv` and `swapped.csv`: the two programs of PyTorch's
  issue 172668 (2 ranks, 4 stages), of which its text shows the part that hangs.
  The first defers every receive to its consumer, the second lets a receive of
  an odd rank go before the send in front of it.

No process group, no model: stages are mocks, and only the classes' planning
runs. Where each order comes from:

- Classes with several stages per rank plan in their constructor and dump both
  files themselves.
- GPipe and 1F1B have no file of their own, so the rank's order is what their
  step does with a stage that records its calls: that is what trains. (They
  have a `_get_pipeline_order` too. For the last rank of 1F1B it gives the
  forwards of micro-batches 1 to M, where the step runs 0 to M-1; elsewhere both
  agree, which is asserted here.) These files have no idle steps. The second
  file is the lowering of `_PipelineScheduleRuntime`; the classes themselves
  fuse a send with the next receive.
"""

import csv
import itertools
import os
import re
import sys
from unittest import mock

from torch.distributed.pipelining import schedules as pt

SINGLE = {"gpipe": pt.ScheduleGPipe, "1f1b": pt.Schedule1F1B}
# (ranks, micro-batches)
SINGLE_SIZES = [(1, 3), (2, 4), (3, 5), (4, 4), (4, 8)]

LOOPED = {
    "looped_bfs": pt.ScheduleLoopedBFS,
    "interleaved_1f1b": pt.ScheduleInterleaved1F1B,
    "interleaved_zero_bubble": pt.ScheduleInterleavedZeroBubble,
}
# (ranks, stages per rank, micro-batches)
LOOPED_SIZES = [(2, 2, 4), (2, 3, 6), (3, 2, 6), (4, 2, 4), (4, 2, 8), (4, 2, 12)]

VEE_SIZES = [(2, 2, 4), (2, 2, 5), (3, 2, 6), (4, 2, 8), (4, 2, 10)]
# DualPipeV needs as many micro-batches as stages.
ZBV_SIZES = VEE_SIZES + [(4, 2, 4)]

# Sizes at which `defer_pp_recv` makes sends and receives of a link differ.
DEFERRED = [
    ("interleaved_zero_bubble", pt.ScheduleInterleavedZeroBubble, [(2, 2, 4), (2, 3, 6)]),
    (
        "zbv_zero_bubble",
        pt.ScheduleZBVZeroBubble,
        [(2, 2, 3), (2, 2, 4), (3, 2, 4), (3, 2, 6), (4, 2, 5), (4, 2, 8)]
        + [(ranks, 2, ranks + 1) for ranks in (5, 6, 7, 8)],
    ),
    (
        "dual_pipe_v",
        pt.ScheduleDualPipeV,
        [(3, 2, 6), (3, 2, 8), (3, 2, 9), (4, 2, 8), (4, 2, 10)]
        + [(ranks, 2, 2 * ranks) for ranks in (5, 6, 7, 8)],
    ),
]


def stages_of(ranks, loops):
    """The stages of rank 0. Planning reads nothing else of them."""
    stages = []
    for loop in range(loops):
        stage = mock.MagicMock()
        stage.stage_index = loop * ranks
        stage.num_stages = ranks * loops
        stage.group_size = ranks
        stage.group_rank = 0
        stages.append(stage)
    return stages


def write_multi(folder, name, schedule_class, size):
    ranks, loops, micro_batches = size
    schedule = schedule_class(stages_of(ranks, loops), micro_batches)
    stem = os.path.join(folder, f"{name}_p{ranks}_v{loops}_m{micro_batches}")
    schedule._dump_csv(stem + ".compute.csv", format="compute_only")
    schedule._dump_csv(stem + ".comms.csv", format="compute_comms")


def executed_order(schedule_class, ranks, rank, micro_batches):
    """What a rank's step computes, in order."""
    order = []
    stage = stages_of(ranks, 1)[0]
    stage.stage_index = stage.group_rank = rank
    for method in "get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops":
        getattr(stage, method).side_effect = lambda micro_batch: []
    stage.forward_one_chunk.side_effect = lambda micro_batch, *args, **kwargs: order.append(
        pt._Action(rank, pt.FORWARD, micro_batch)
    )
    stage.backward_one_chunk.side_effect = lambda micro_batch, **kwargs: order.append(
        pt._Action(rank, pt.FULL_BACKWARD, micro_batch)
    )
    schedule = schedule_class(stage, micro_batches)
    inputs = [()] * micro_batches
    with (
        mock.patch.object(schedule, "_check_inputs", return_value=(inputs, inputs)),
        mock.patch.object(schedule, "_initialize_stage"),
        mock.patch.object(schedule, "_update_losses"),
    ):
        schedule._step_microbatches()
    return schedule, order


def write_single(folder, name, schedule_class, size):
    ranks, micro_batches = size
    orders = {}
    for rank in range(ranks):
        schedule, orders[rank] = executed_order(schedule_class, ranks, rank, micro_batches)
        stated = [
            action
            for action in schedule.pipeline_order[rank]
            if action is not None and action.is_compute_op
        ]
        if name == "gpipe" or rank < ranks - 1:
            assert stated == orders[rank], (name, size, rank)
    runtime = pt._PipelineScheduleRuntime(stages_of(ranks, 1), micro_batches)
    runtime.pipeline_order = orders
    runtime._prepare_schedule_with_comms(orders)
    stem = os.path.join(folder, f"{name}_p{ranks}_v1_m{micro_batches}")
    runtime._dump_csv(stem + ".compute.csv", format="compute_only")
    runtime._dump_csv(stem + ".comms.csv", format="compute_comms")


def link_orders(schedule):
    """By directed link: the messages in the order of their sends, and of their receives."""
    rank_of = schedule.stage_index_to_group_rank
    sends, receives = {}, {}
    for rank, actions in schedule.pipeline_order_with_comms.items():
        for action in actions:
            stage, message = action.stage_index, action.microbatch_index
            kind = action.computation_type
            if kind == pt.SEND_F:
                sends.setdefault((rank, rank_of[stage + 1]), []).append(("F", stage, message))
            elif kind == pt.SEND_B:
                sends.setdefault((rank, rank_of[stage - 1]), []).append(("B", stage, message))
            elif kind == pt.RECV_F:
                receives.setdefault((rank_of[stage - 1], rank), []).append(
                    ("F", stage - 1, message)
                )
            elif kind == pt.RECV_B:
                receives.setdefault((rank_of[stage + 1], rank), []).append(
                    ("B", stage + 1, message)
                )
    return sends, receives


def write_deferred(folder, name, schedule_class, size):
    ranks, loops, micro_batches = size
    schedule = schedule_class(stages_of(ranks, loops), micro_batches, defer_pp_recv=True)
    sends, receives = link_orders(schedule)
    assert sends != receives, (name, size)
    stem = f"{name}_p{ranks}_v{loops}_m{micro_batches}"
    schedule._dump_csv(os.path.join(folder, stem + ".deferred.csv"), format="compute_comms")


def with_receives_at_consumers(actions):
    """Each receive right before the task that takes it: the first program of issue 172668."""
    receives = {
        (pt.FORWARD if a.computation_type == pt.RECV_F else pt.FULL_BACKWARD, *a[::2]): a
        for a in actions
        if a.computation_type in (pt.RECV_F, pt.RECV_B)
    }
    moved = []
    for action in actions:
        if action.computation_type in (pt.RECV_F, pt.RECV_B):
            continue
        receive = receives.get((action.computation_type, *action[::2]))
        moved += [receive, action] if receive else [action]
    return moved


def with_receives_before_sends(actions):
    """A receive goes before the send right in front of it."""
    actions = list(actions)
    for i in range(1, len(actions)):
        if actions[i].computation_type in (pt.RECV_F, pt.RECV_B) and actions[
            i - 1
        ].computation_type in (pt.SEND_F, pt.SEND_B):
            actions[i - 1], actions[i] = actions[i], actions[i - 1]
    return actions


def write_issue_172668(folder):
    schedule = pt.ScheduleInterleaved1F1B(stages_of(2, 2), 4)
    order = schedule.pipeline_order_with_comms
    for rank in order:
        order[rank] = with_receives_at_consumers(order[rank])
    schedule._dump_csv(os.path.join(folder, "deferred.csv"), format="compute_comms")
    order[1] = with_receives_before_sends(order[1])
    schedule._dump_csv(os.path.join(folder, "swapped.csv"), format="compute_comms")
    # The parts that the issue shows.
    text = [",".join(str(action) for action in order[rank]) for rank in (0, 1)]
    assert "2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0" in text[0], text[0]
    assert "3RECV_F1,3SEND_B0,3F1,3B1" in text[1], text[1]


def load(path):
    """Loads a file of either format, lowers it, and checks the waits."""
    with open(path, newline="") as file:
        cells = [[cell for cell in row if cell] for row in csv.reader(file)]
    tasks = re.findall(r"(\d+)[FIWB](\d+)", " ".join(itertools.chain(*cells)))
    stages = 1 + max(int(stage) for stage, _ in tasks)
    micro_batches = 1 + max(int(micro_batch) for _, micro_batch in tasks)
    has_messages = any("SEND_" in cell for row in cells for cell in row)
    runtime = pt._PipelineScheduleRuntime(
        stages_of(len(cells), stages // len(cells)), micro_batches
    )
    runtime._load_csv(path, format="compute_comms" if has_messages else "compute_only")
    print(f"{path}: {len(cells)} ranks, {stages} stages, {micro_batches} micro-batches")


def main():
    if sys.argv[1] == "--load":
        for path in sys.argv[2:]:
            load(path)
        return
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for (name, schedule_class), size in itertools.product(SINGLE.items(), SINGLE_SIZES):
        write_single(folder, name, schedule_class, size)
    for (name, schedule_class), size in itertools.product(LOOPED.items(), LOOPED_SIZES):
        write_multi(folder, name, schedule_class, size)
    for size in ZBV_SIZES:
        write_multi(folder, "zbv_zero_bubble", pt.ScheduleZBVZeroBubble, size)
    for size in VEE_SIZES:
        write_multi(folder, "dual_pipe_v", pt.ScheduleDualPipeV, size)
    for refused in "deferred", "issue-172668":
        os.makedirs(os.path.join(folder, refused), exist_ok=True)
    for name, schedule_class, sizes in DEFERRED:
        for size in sizes:
            write_deferred(os.path.join(folder, "deferred"), name, schedule_class, size)
    write_issue_172668(os.path.join(folder, "issue-172668"))


if __name__ == "__main__":
    main()
