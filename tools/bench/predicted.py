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
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PIPEWRIGHT = os.path.join(ROOT, "build/tools/pipewright/pipewright")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(" ".join(command) + "\n" + result.stdout + result.stderr)
    return result.stdout


def train(out, steps, extra):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        run(["taskset", "-c", "0,1", os.path.join(out, "train"), "--steps", str(steps), "--lr", "1e-4",
             "--data", "tokens=random", "--data", "targets=random", "--threads-per-rank", "1",
             "--save", "none", "--log", log.name] + extra)
        with open(log.name) as file:
            seconds = [float(s) for s in re.findall(r'"seconds":([0-9.e-]+)', file.read())]
    return statistics.median(seconds[2:steps])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=os.path.join(ROOT, "test/Inputs/models/byte-gpt.onnx"))
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
            run([PIPEWRIGHT, "compile", *options, "-o", out])
            measured, predicted, ratios = [], [], []
            for _ in range(a.rounds):
                train(out, a.steps, ["--trace", trace, "--trace-steps", str(a.steps - 2)])
                plan = json.loads(run([PIPEWRIGHT, "plan", *options, "--task-times", trace, "--json"]))
                predicted.append(1e3 * plan["predicted_step_seconds"])
                measured.append(1e3 * train(out, a.steps, []))
                ratios.append(predicted[-1] / measured[-1])
            print(f"| {schedule} | {micro_batches} | {statistics.median(measured):.1f} | "
                  f"{statistics.median(predicted):.1f} | **{statistics.median(ratios):.3f}** "
                  f"({min(ratios):.3f} to {max(ratios):.3f}) |", flush=True)


if __name__ == "__main__":
    main()
