#!/usr/bin/python3
"""What pipelining pays: 2 ranks against the same stages on 1 rank.

    tools/bench/pipelining.py [--model MODEL.onnx] [--micro-batches 16] [--rounds 7]

Each rank has one thread and one core. Rounds alternate in one run. The bound
is what the schedule allows with perfectly equal stages: 2 M / (M + 1).
Prints a Markdown table of medians. Needs two idle cores.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import exit_with  # noqa: E402

STEPS = 9


def compile_model(a, out, ranks, schedule):
    bench.compile_model(a.model, out, "--ranks", ranks, "--loops", 2 // ranks,
                        "--schedule", schedule, "--micro-batches", a.micro_batches,
                        "--micro-batch-size", a.micro_batch_size, "--optimizer", "adamw")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=bench.BYTE_GPT)
    parser.add_argument("--micro-batches", type=int, default=16)
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    a = parser.parse_args()
    work = tempfile.mkdtemp()
    one = os.path.join(work, "one")
    compile_model(a, one, 1, "1f1b")
    bound = 2 * a.micro_batches / (a.micro_batches + 1)
    print("| schedule | M | 1 rank ms | 2 ranks ms | times faster | bound |")
    print("|---|---|---|---|---|---|")
    for schedule in ("1f1b", "gpipe"):
        two = os.path.join(work, schedule)
        compile_model(a, two, 2, schedule)
        singles, doubles, ratios = [], [], []
        for number in range(a.rounds):
            singles.append(1e3 * bench.step_seconds(one, STEPS, str(number % 2)))
            doubles.append(1e3 * bench.step_seconds(two, STEPS, "0,1"))
            ratios.append(singles[-1] / doubles[-1])
        print(f"| {schedule} | {a.micro_batches} | {statistics.median(singles):.0f} | "
              f"{statistics.median(doubles):.0f} | {with_range(ratios)} "
              f"| {bound:.2f} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
