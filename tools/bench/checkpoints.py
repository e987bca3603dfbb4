#!/usr/bin/python3
"""What checkpoints cost: step times with one every ten steps and with none, and a save by itself.

    tools/bench/checkpoints.py MODEL.onnx [--rounds 3] [--steps 30] [--every 10] [--ranks 1]
                               [--micro-batch-size 1] [--cores 0,1] [--python PYTHON]

Rounds alternate. Single steps of some machines spread by more than a checkpoint costs, so the steps
of one run are compared, too: the mean of a cycle, from one checkpoint to the next, with its second
half, in which nothing is saved any more; each place in the cycle by its median over all cycles
behind the first checkpoint. What passes between two steps is added to the second one. A save by itself is a run of one step that keeps a checkpoint less one
that keeps none, as wall time. With --python, an interpreter that has torch, the same number of
values as float32 is saved by torch.distributed.checkpoint (DCP), too. Prints Markdown tables.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.files import read_log  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import call, exit_with  # noqa: E402

DCP = """
import sys, time, torch, torch.distributed.checkpoint as dcp
folder, values = sys.argv[1], int(sys.argv[2])
state = {f"t{i}": torch.randn(values // 64) for i in range(64)}
begin = time.perf_counter()
dcp.save(state, checkpoint_id=folder)
print(time.perf_counter() - begin)
"""


def folder_bytes(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def whole_cycles(seconds, every):
    """The steps from each checkpoint to the next, without what the run leaves of a cycle."""
    return [seconds[begin:begin + every]
            for begin in range(every, len(seconds) - every + 1, every)]


def cost_of_cycles(cycles):
    """Seconds of a step with nothing to save, and of the mean step of a cycle."""
    places = [statistics.median(place) for place in zip(*cycles)]
    return statistics.mean(places[len(places) // 2:]), statistics.mean(places)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--micro-batch-size", default="1")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--python")
    a = parser.parse_args()
    work = tempfile.mkdtemp()
    out, kept = os.path.join(work, "out"), os.path.join(work, "kept")
    bench.compile_model(a.model, out, "--ranks", a.ranks, "--micro-batches", "1",
                        "--micro-batch-size", a.micro_batch_size, "--optimizer", "adamw")

    def timed(steps, *options):
        """Seconds of all, and of each step."""
        shutil.rmtree(kept, ignore_errors=True)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
            begin = time.perf_counter()
            bench.train(out, steps, a.cores, 1, log.name, options=options)
            whole = time.perf_counter() - begin
            return whole, [record["seconds"] + record["seconds_between"]
                           for record in read_log(log.name) if "seconds" in record]

    def keep(every):
        return "--checkpoint", kept, "--checkpoint-every", every

    def mean(seconds):
        """Milliseconds of the steps behind the first two, which warm up."""
        return 1e3 * statistics.mean(seconds[2:])

    ratios, without, having, saves, cycles = [], [], [], [], []
    for _ in range(a.rounds):
        without.append(mean(timed(a.steps)[1]))
        seconds = timed(a.steps, *keep(a.every))[1]
        having.append(mean(seconds))
        ratios.append(having[-1] / without[-1])
        cycles += whole_cycles(seconds, a.every)
        saves.append(timed(1, *keep(1))[0] - timed(1)[0])
    timed(1, *keep(1))
    size = folder_bytes(kept)
    print("| a checkpoint every | step without ms | step with ms | with / without |")
    print("|---|---|---|---|")
    print(f"| {a.every} steps | {statistics.median(without):.1f} | {statistics.median(having):.1f} | "
          f"{with_range(ratios, 3)} |\n")
    if statistics.median(saves) > a.every / 2 * statistics.median(without) / 1e3:
        print("A save takes longer than half a cycle: there are no steps without one.\n")
    elif cycles:
        print("| cycles | steps with nothing to save ms | all ms | all / those |")
        print("|---|---|---|---|")
        free, all_steps = cost_of_cycles(cycles)
        print(f"| {len(cycles)} | {1e3 * free:.1f} | {1e3 * all_steps:.1f} | "
              f"**{all_steps / free:.3f}** |\n")
    print("| a save by itself | MB | s | MB/s |")
    print("|---|---|---|---|")

    def row(name, seconds, size):
        middle = statistics.median(seconds)
        print(f"| {name} | {size / 1e6:.0f} | {middle:.2f} | {size / 1e6 / middle:.0f} |")

    row("Pipewright", saves, size)
    if a.python:
        theirs = []
        for _ in range(a.rounds):
            shutil.rmtree(kept, ignore_errors=True)
            theirs.append(float(call([a.python, "-c", DCP, kept, str(size // 4)], "DCP").split()[-1]))
        row("torch.distributed.checkpoint", theirs, folder_bytes(kept))
    shutil.rmtree(work)


if __name__ == "__main__":
    exit_with(main)
