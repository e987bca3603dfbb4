#!/usr/bin/python3
"""What a step takes within ever less memory.

    tools/bench/memory_study.py MODEL [--ranks 2] [--micro-batches 8] [--micro-batch-size 4]
                                [--schedule 1f1b] [--balance flops] [--optimizer adamw]
                                [--limits 10] [--rounds 3] [--no-run]

MODEL is a .onnx file, or gpt-s or vgg19, which this script writes. The fullest arena without
recomputation and the smallest that any mode of --remat has are the ends of a range; `--remat auto`
plans for limits spread over it evenly, and so does the best of the modes before keep:N, all ranks
alike. Each plan is compiled and run, two steps for its weights, which are compared with those of no
recomputation bit by bit, and more for its time; what each rank has used is compared with the plan to
the byte. Steps are predicted for the machine at hand. In each round all programs run some steps in
turn. What is printed of one is the median of its steps by that of the steps of `none`, and in
brackets the same of the shortest. Prints a Markdown table.
"""

import argparse
import filecmp
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.onnx_models import MODELS  # noqa: E402
from pipetools.running import Failure, call, exit_with, find_pipewright  # noqa: E402

UNIFORM = ["none", "pointwise", "every:1", "every:2", "full"]
STEPS = 4


class Study:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.work = work
        self.options = [arguments.model, "--loss", "softmax-cross-entropy"]
        for name in ("optimizer", "balance", "ranks", "micro_batches", "micro_batch_size", "schedule"):
            self.options += ["--" + name.replace("_", "-"), getattr(arguments, name)]

    def plan(self, *words):
        """The plan, or none where it does not fit."""
        command = [find_pipewright(), "plan", *self.options, *words, "--json"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=900, stdin=subprocess.DEVNULL)
        if done.returncode != 0 and "--memory-limit" not in done.stderr:
            raise Failure(f"plan: {done.stderr.strip()[-2000:]}")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def compile(self, name, remat):
        out = os.path.join(self.work, name)
        call([find_pipewright(), "compile", *self.options, "--remat", remat, "-o", out], "compile")
        inputs = self.plan("--remat", remat)["inputs"]
        return Program(out, [f"{name}=random" for name in inputs], self.arguments.ranks)

    def run(self, modes):
        """By mode: whether weights and memory are as they should be, and the step by that of none."""
        programs = {mode: self.compile(f"program-{number}", mode)
                    for number, mode in enumerate(modes)}
        steps = {mode: [] for mode in programs}
        for _ in range(self.arguments.rounds):
            for mode, program in programs.items():
                steps[mode] += program.seconds_of_steps()

        def ratio(mode, of):
            return f"{of(steps[mode]) / of(steps['none']):.3f}"

        return {mode: ["same" if program.has_weights_of(programs["none"]) else "DIFFER",
                       "as planned" if program.is_planned else "OTHER",
                       f"{ratio(mode, statistics.median)} ({ratio(mode, min)})"]
                for mode, program in programs.items()}


class Program:
    """Has its weights after two steps, and whether each rank has used what was planned."""

    def __init__(self, out, data, ranks):
        self.out, self.data, self.ranks = out, data, ranks
        self.weights = out + ".safetensors"
        words = [word for one in data for word in ("--data", one)]
        log = call([os.path.join(out, "train"), *words, "--steps", 2, "--lr", "0.01",
                    "--threads-per-rank", 1, "--memory", "--save", self.weights], "train")
        lines = re.findall(r"rank \d+: measured .*", log)
        self.is_planned = len(lines) == ranks and all("as planned" in line for line in lines)

    def has_weights_of(self, other):
        return filecmp.cmp(self.weights, other.weights, shallow=False)

    def seconds_of_steps(self):
        cores = ",".join(map(str, range(self.ranks)))
        return bench.seconds_of_steps(self.out, STEPS + 1, cores, data=self.data)


def largest(plan):
    return max(rank["arena_bytes"] for rank in plan["ranks"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--balance", default="flops")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--limits", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-run", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if arguments.model in MODELS:
            arguments.model = MODELS[arguments.model]().write(work, deviation=0.02)
        study = Study(arguments, work)
        uniform = {mode: study.plan("--remat", mode) for mode in UNIFORM}
        most = largest(uniform["none"])
        least = min(map(largest, uniform.values()))
        limits = [most - (most - least) * number // (arguments.limits - 1)
                  for number in range(arguments.limits)]
        plans = [study.plan("--remat", "auto", "--memory-limit", f"{limit}B") for limit in limits]
        modes = ["none"] + [plan["options"]["remat"] for plan in plans if plan]
        runs = {} if arguments.no_run else study.run(dict.fromkeys(modes))
        print("| limit, MB | all ranks alike, ms | `auto`, ms | chosen | MB | bits | memory |"
              " measured, x none | predicted, x none |")
        print("|---|---|---|---|---|---|---|---|---|")
        first = uniform["none"]["predicted_step_seconds"]
        for limit, plan in zip(limits, plans):
            alike = [plan["predicted_step_seconds"] for plan in uniform.values()
                     if largest(plan) <= limit]
            cells = [f"{limit / 1e6:.1f}", f"{min(alike) * 1e3:.1f}" if alike else "none fits"]
            if not plan:
                print("| " + " | ".join(cells) + " | none fits | | | | | | |", flush=True)
                continue
            remat = plan["options"]["remat"]
            step = plan["predicted_step_seconds"]
            cells += [f"{step * 1e3:.1f}", f"`{remat}`", f"{largest(plan) / 1e6:.1f}",
                      *runs.get(remat, []), f"{step / first:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    exit_with(main)
