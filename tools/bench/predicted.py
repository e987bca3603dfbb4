#!/usr/bin/python3
"""Predicted against measured step time, on 2 ranks.

    tools/bench/predicted.py [--model MODEL.onnx] [--rounds 5] [--schedules ...] [--micro-batches ...]

In each round a first run of the program is traced; `pipewright plan` simulates
the schedule with the medians of its task times (--task-times). A second run,
without a trace, is what the prediction is compared with. Each rank has one
thread and one core. Prints a Markdown table of medians. Needs two idle cores.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import call, exit_with, find_pipewright  # noqa: E402


def train(out, steps, *options):
    return bench.step_seconds(out, steps, "0,1", warm_up=2, options=options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=bench.BYTE_GPT)
    parser.add_argument("--micro-batch-size", default="4")
    parser.add_argument("--schedules", default="gpipe,1f1b,breadth-first,zb-h1")
    parser.add_argument("--micro-batches", default="2,4,8,16,32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    a = parser.parse_args()
    work = tempfile.mkdtemp()
    print("| schedule | M | measured ms | predicted ms | predicted / measured |")
    print("|---|---|---|---|---|")
    for schedule in a.schedules.split(","):
        loops = "2" if schedule == "breadth-first" else "1"
        for micro_batches in a.micro_batches.split(","):
            options = [a.model, "--ranks", "2", "--loops", loops, "--schedule", schedule,
                       "--micro-batches", micro_batches, "--micro-batch-size", a.micro_batch_size,
                       "--loss", "softmax-cross-entropy", "--optimizer", "adamw"]
            out = os.path.join(work, schedule + micro_batches)
            trace = os.path.join(work, "trace.json")
            call([find_pipewright(), "compile", *options, "-o", out])
            measured, predicted, ratios = [], [], []
            for _ in range(a.rounds):
                train(out, a.steps, "--trace", trace, "--trace-steps", str(a.steps - 2))
                plan = json.loads(call([find_pipewright(), "plan", *options, "--task-times", trace,
                                        "--json"]))
                predicted.append(1e3 * plan["predicted_step_seconds"])
                measured.append(1e3 * train(out, a.steps))
                ratios.append(predicted[-1] / measured[-1])
            print(f"| {schedule} | {micro_batches} | {statistics.median(measured):.1f} | "
                  f"{statistics.median(predicted):.1f} | {with_range(ratios, 3)} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
