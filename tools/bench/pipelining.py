#!/usr/bin/python3
"""What pipelining pays: 2 ranks against the same stages on 1 rank.

    tools/bench/pipelining.py [--model MODEL.onnx] [--micro-batches 16] [--rounds 7]

Each rank has one thread and one core. Rounds alternate in one run. The bound
is what the schedule allows with perfectly equal stages: 2 M / (M + 1).
Prints a Markdown table of medians. Needs two idle cores.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def compile_model(model, out, ranks, schedule, micro_batches, size):
    command = [os.path.join(ROOT, "build/tools/pipewright/pipewright"), "compile", model, "-o", out,
               "--ranks", str(ranks), "--loops", str(2 // ranks), "--schedule", schedule,
               "--micro-batches", str(micro_batches), "--micro-batch-size", str(size),
               "--loss", "softmax-cross-entropy", "--optimizer", "adamw"]
    subprocess.run(command, check=True, capture_output=True)


def step_time(out, cores):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        result = subprocess.run(
            ["taskset", "-c", cores, os.path.join(out, "train"), "--steps", "9", "--lr", "1e-4",
             "--data", "tokens=random", "--data", "targets=random",
             "--threads-per-rank", "1", "--save", "none",
             "--log", log.name], capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stdout + result.stderr)
        with open(log.name) as file:
            seconds = [float(s) for s in re.findall(r'"seconds":([0-9.e-]+)', file.read())]
    return 1e3 * statistics.median(seconds[1:9])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=os.path.join(ROOT, "test/Inputs/models/byte-gpt.onnx"))
    parser.add_argument("--micro-batches", type=int, default=16)
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    a = parser.parse_args()
    work = tempfile.mkdtemp()
    one = os.path.join(work, "one")
    compile_model(a.model, one, 1, "1f1b", a.micro_batches, a.micro_batch_size)
    bound = 2 * a.micro_batches / (a.micro_batches + 1)
    print("| schedule | M | 1 rank ms | 2 ranks ms | times faster | bound |")
    print("|---|---|---|---|---|---|")
    for schedule in ("1f1b", "gpipe"):
        two = os.path.join(work, schedule)
        compile_model(a.model, two, 2, schedule, a.micro_batches, a.micro_batch_size)
        singles, doubles, ratios = [], [], []
        for number in range(a.rounds):
            singles.append(step_time(one, str(number % 2)))
            doubles.append(step_time(two, "0,1"))
            ratios.append(singles[-1] / doubles[-1])
        print(f"| {schedule} | {a.micro_batches} | {statistics.median(singles):.0f} | "
              f"{statistics.median(doubles):.0f} | **{statistics.median(ratios):.2f}** "
              f"({min(ratios):.2f} to {max(ratios):.2f}) | {bound:.2f} |", flush=True)


if __name__ == "__main__":
    main()
