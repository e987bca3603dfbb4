#!/usr/bin/python3
"""What BPipe moves and saves: gpt-s on 4 and 8 ranks, beside 1F1B.

    tools/bench/bpipe_study.py [MODEL] [--ranks 4,8] [--micro-batches 32] [--micro-batch-size 1]
                               [--mpirun "mpirun --oversubscribe --bind-to none"]

MODEL is a .onnx file, or gpt-s, which this script writes. Both programs train two steps with ranks as
threads, and BPipe's also with ranks as processes of MPI; weights are compared bit by bit, what each
rank has used with the plan to the byte, and the stashes of each with BPipe's bound, ceil((P+2)/2), by
`pipewright check`. Stashes that the generated program sends away in a step stand beside
M (K - L) / (K - 2), where rank r keeps K = P - r under 1F1B and L is the bound. Prints a Markdown
table; `--mpirun ""` leaves processes out."""

import argparse
import filecmp
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.onnx_models import MODELS  # noqa: E402
from pipetools.running import Failure, call, exit_with, find_pipewright  # noqa: E402


def compiled(arguments, ranks, schedule, out):
    call([find_pipewright(), "compile", arguments.model, "--loss", "softmax-cross-entropy",
          "--optimizer", "adamw", "--ranks", ranks, "--micro-batches", arguments.micro_batches,
          "--micro-batch-size", arguments.micro_batch_size, "--schedule", schedule, "-o", out])
    with open(os.path.join(out, "plan.json")) as file:
        return json.load(file)


def trained(out, plan, weights, launcher=()):
    """Two steps; fails unless each rank has used what was planned."""
    data = [word for name in plan["inputs"] for word in ("--data", f"{name}=random")]
    log = call([*launcher, os.path.join(out, "train"), *data, "--steps", 2, "--lr", "0.01",
                "--threads-per-rank", 1, "--memory", "--save", weights])
    lines = re.findall(r"rank \d+: measured .*", log)
    if len(lines) != len(plan["ranks"]) or not all("as planned" in line for line in lines):
        raise Failure(f"{out}: ranks have not used what was planned:\n{log}")


def sent_away(out, ranks):
    """By rank: the stashes that its step sends to another one, to get them back."""
    with open(os.path.join(out, "src", "ranks.cpp")) as file:
        text = file.read()
    counts = []
    for rank in range(ranks):
        step = text.split(f"void rank{rank}_step(", 1)[1].split("\n}\n", 1)[0]
        own = re.findall(r"postSend\((\d+), .*stash of F(\d+)\.", step)
        counts.append(sum(int(stage) == rank for _, stage in own))
    return counts


def study(arguments, ranks, work):
    names = {name: os.path.join(work, f"{name}-{ranks}") for name in ("1f1b", "bpipe")}
    plans = {name: compiled(arguments, ranks, name, out) for name, out in names.items()}
    weights = {name: out + ".safetensors" for name, out in names.items()}
    for name, out in names.items():
        trained(out, plans[name], weights[name])
    runs = ["bpipe"]
    if arguments.mpirun:
        runs.append("mpi")
        weights["mpi"] = names["bpipe"] + ".mpi.safetensors"
        trained(names["bpipe"], plans["bpipe"], weights["mpi"],
                [*arguments.mpirun.split(), "-n", ranks])
    for run in runs:
        if not filecmp.cmp(weights["1f1b"], weights[run], shallow=False):
            raise Failure(f"{ranks} ranks, {run}: other weights than those of 1f1b")
    limit = (ranks + 3) // 2
    call([find_pipewright(), "check", os.path.join(names["bpipe"], "plan.json"), "--memory", limit])
    arenas = {name: [rank["arena_bytes"] for rank in plan["ranks"]] for name, plan in plans.items()}
    for rank, count in enumerate(sent_away(names["bpipe"], ranks)):
        most = ranks - rank
        expected = arguments.micro_batches * (most - limit) / (most - 2) if most > limit else 0
        print(f"| {ranks} | {rank} | {arenas['1f1b'][rank] / 1e6:.2f} | {arenas['bpipe'][rank] / 1e6:.2f} |"
              f" {count} | {expected:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="gpt-s")
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--micro-batches", type=int, default=32)
    parser.add_argument("--micro-batch-size", type=int, default=1)
    parser.add_argument("--mpirun", default="mpirun --allow-run-as-root --oversubscribe --bind-to none")
    arguments = parser.parse_args()
    print("| ranks | rank | arena with 1f1b, MB | with bpipe, MB | sends away | formula |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        if arguments.model in MODELS:
            arguments.model = MODELS[arguments.model]().write(work, deviation=0.02)
        for ranks in arguments.ranks.split(","):
            study(arguments, int(ranks), work)


exit_with(main)
