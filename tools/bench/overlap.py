#!/usr/bin/python3
"""Sums of gradients beside backwards: how long ranks stand still for them, predicted and measured.

    tools/bench/overlap.py [--model MODEL.onnx] [--before PIPEWRIGHT] [--rounds 7] [--cases ...]

A case is RANKSxREPLICAS:SCHEDULE:LOOPS:MICROBATCHES; each rank has one thread. In each round a first
run is traced, and `pipewright plan` simulates the schedule with the medians of its task times; a
second run, without a trace, says the step time and how long the rank that waits longest stands still
for sums. `--before` names the compiler of another commit, whose programs are timed in the same
rounds. Prints a Markdown table of medians; `beside` is the part of the sums' time in which the rank
ran tasks. Needs an idle core for each rank of each replica.
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
from pipetools.files import read_events, read_seconds  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import call, exit_with, find_pipewright  # noqa: E402

CASES = "1x2:gpipe:1:4,1x2:breadth-first:4:4,2x2:1f1b:1:4,2x2:breadth-first:2:4"
WARM_UP = 2


def beside(path):
    """Of the time of collectives, the part in which their rank ran tasks; 0 to 1."""
    tasks, sums = {}, {}
    for event in read_events(path):
        span = (event.get("ts", 0), event.get("ts", 0) + event.get("dur", 0))
        if event.get("cat") == "task":
            tasks.setdefault(event["tid"], []).append(span)
        elif event.get("cat") == "collective":
            sums.setdefault((event["tid"] + 1) // 1000000 - 2, []).append(span)
    total = overlapped = 0
    for rank, spans in sums.items():
        for begin, end in spans:
            total += end - begin
            overlapped += sum(max(0, min(end, last) - max(begin, first))
                              for first, last in tasks.get(rank, []))
    return overlapped / total if total else 0


def train(out, steps, cores, *options):
    """Median seconds of a step, and in which the rank that waits longest stands still, or None."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        bench.train(out, steps, cores, 1, log.name, options=options)
        lines = [json.loads(line) for line in Path(log.name).read_text().splitlines()]
        waits = [line["measured_collective_wait_seconds"] for line in lines
                   if "measured_collective_wait_seconds" in line]
        seconds = statistics.median(read_seconds(log.name)[WARM_UP:steps])
        return seconds, waits[0] if waits else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=bench.BYTE_GPT)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--before", help="the pipewright of another commit")
    parser.add_argument("--micro-batch-size", default="4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12)
    a = parser.parse_args()
    work = tempfile.mkdtemp()
    cores = f"0-{os.cpu_count() - 1}"
    print("| case | step ms | waits ms | predicted | beside | step / step before |")
    print("|---|---|---|---|---|---|")
    for case in a.cases.split(","):
        mesh, schedule, loops, micro_batches = case.split(":")
        ranks, replicas = mesh.split("x")
        options = [a.model, "--ranks", ranks, "--data-parallel", replicas, "--loops", loops,
                   "--schedule", schedule, "--micro-batches", micro_batches,
                   "--micro-batch-size", a.micro_batch_size, "--loss", "softmax-cross-entropy",
                   "--optimizer", "adamw"]
        out, old = os.path.join(work, case), os.path.join(work, "before " + case)
        trace = os.path.join(work, "trace.json")
        call([find_pipewright(), "compile", *options, "-o", out])
        if a.before:
            call([a.before, "compile", *options, "-o", old])
        steps, waits, predicted, parts, ratios = [], [], [], [], []
        for _ in range(a.rounds):
            train(out, a.steps, cores, "--trace", trace, "--trace-steps", str(a.steps - WARM_UP))
            plan = json.loads(call([find_pipewright(), "plan", *options, "--task-times", trace, "--json"]))
            seconds, waited = train(out, a.steps, cores)
            steps.append(1e3 * seconds)
            waits.append(1e3 * waited)
            predicted.append(1e3 * plan["predicted_collective_wait_seconds"])
            parts.append(beside(trace))
            if a.before:
                ratios.append(seconds / train(old, a.steps, cores)[0])
        print(f"| {case} | {statistics.median(steps):.1f} | {with_range(waits, 2)} | "
              f"{with_range(predicted, 2)} | {statistics.median(parts):.0%} | "
              f"{with_range(ratios, 3) if ratios else ''} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
