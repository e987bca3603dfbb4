#!/usr/bin/python3
"""What checkpoints cost: step times with one every ten steps and with none, and a save by itself.

    tools/bench/checkpoints.py MODEL.onnx [--rounds 3] [--steps 30] [--every 10] [--ranks 1]
                               [--micro-batch-size 1] [--cores 0,1] [--python PYTHON]

Rounds alternate. A save by itself is a run of one step that keeps a checkpoint less one that keeps
none, as wall time. With --python, an interpreter that has torch, the same number of values as
float32 is saved by torch.distributed.checkpoint (DCP), too. Prints two Markdown tables.
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
        """Seconds of all, and the mean of the steps behind the first two."""
        shutil.rmtree(kept, ignore_errors=True)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
            begin = time.perf_counter()
            bench.train(out, steps, a.cores, 1, log.name, options=options)
            whole = time.perf_counter() - begin
            seconds = bench.read_seconds(log.name)[2:]
        return whole, statistics.mean(seconds) if seconds else 0.0

    def keep(every):
        return "--checkpoint", kept, "--checkpoint-every", every

    ratios, without, having, saves = [], [], [], []
    for _ in range(a.rounds):
        without.append(1e3 * timed(a.steps)[1])
        having.append(1e3 * timed(a.steps, *keep(a.every))[1])
        ratios.append(having[-1] / without[-1])
        saves.append(timed(1, *keep(1))[0] - timed(1)[0])
    timed(1, *keep(1))
    size = folder_bytes(kept)
    print("| a checkpoint every | step without ms | step with ms | with / without |")
    print("|---|---|---|---|")
    print(f"| {a.every} steps | {statistics.median(without):.1f} | {statistics.median(having):.1f} | "
          f"{with_range(ratios, 3)} |\n")
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
