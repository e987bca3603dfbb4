#!/usr/bin/python3
"""What of the replicas' sums lengthens a step, by schedule, level of ZeRO and batch: a simulation.

    tools/bench/replica_study.py [--machine v100] [--micro-batches 8,16,32,64] [--save FILE.jsonl]
    tools/bench/replica_study.py --load FILE.jsonl

A stack of decoder layers in bf16, one pipeline in each node of 8 GPUs, one replica in each node, so
that a GPU sends gradients over its share of the node's network. Nothing is compiled or run. The
model's weights are a file without content. `pipewright plan` orders the tasks and the sums for a
machine in a file; `pipewright check` simulates the plan again, and `pipewright schedules` does so
without the sums. Prints Markdown tables with a column for each number of samples per GPU and step,
and draws the shares of the ideal step, in which no rank ever waits.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.onnx_models import Decoder  # noqa: E402
from pipetools.running import Failure, call, exit_with, find_pipewright  # noqa: E402

# What all products together and attention reached in a step of GPT-2 in bf16 on an H200, and memory
# of MachineModel::h100, over the published peaks. Taken to be the same on other GPUs.
SHARES = (640 / 989, 218 / 989, 2.8 / 3.35)
# Published: FLOP/s of tensor cores in 16 bits, bytes per second of memory, of the links within a
# node and of a GPU's share of its network, both in one direction.
MACHINES = {
    # Tesla V100 SXM2 (data sheet); DGX-1 (white paper): an NVLink between neighbours, in one
    # direction; four InfiniBand adapters of 100 Gb/s for eight GPUs.
    "v100": (125e12, 900e9, 25e9, 4 * 12.5e9 / 8),
    # A100 80 GB SXM, DGX A100 (data sheets): NVLink of 600 GB/s in both directions together; eight
    # InfiniBand adapters of 200 Gb/s for eight GPUs.
    "a100": (312e12, 2039e9, 300e9, 25e9),
    # H100 SXM, DGX H100 (data sheets): NVLink of 900 GB/s in both directions together; eight
    # InfiniBand adapters of 400 Gb/s for eight GPUs.
    "h100": (989e12, 3.35e12, 450e9, 50e9),
}
# As MachineModel::h100 has them.
SECONDS = {"seconds_per_random": 1e-12, "seconds_per_call": 2e-6, "link_latency": 10e-6}

SCHEDULES = ("gpipe", "1f1b", "interleaved", "breadth-first")
LETTERS = {"gpipe": "G", "1f1b": "1", "interleaved": "I", "breadth-first": "B"}


def write_machine(name, folder, ranks):
    """A file for --machine, with a pipeline of so many ranks in each node."""
    peak, memory, inside, network = MACHINES[name]
    figures = {"matmul_flops": peak * SHARES[0], "convolution_flops": peak * SHARES[0],
               "attention_flops": peak * SHARES[1], "bandwidth": memory * SHARES[2],
               "link_bandwidth": inside, "host_ranks": ranks,
               "network_latency": SECONDS["link_latency"], "network_bandwidth": network, **SECONDS}
    path = Path(folder, "machine.json")
    path.write_text(json.dumps({"processor": name, "figures": {"bf16": figures}}))
    return path


def simulate(plan, folder):
    """Seconds of a step, of the same without works, and of rank 0's works by kind."""
    path, page = os.path.join(folder, "plan.json"), os.path.join(folder, "plan.html")
    Path(path).write_text(json.dumps(plan))
    call([find_pipewright(), "check", path, "--html", page])
    data = re.search(r"^const data = (\{.*?\});$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    drawn = json.loads(data[1])["timetables"][0]
    # For each task five numbers, of which the last are begin and length in microseconds; for each
    # work its own number and these.
    ends = [start + length for rank in drawn["tasks"] for start, length in zip(rank[3::5], rank[4::5])]
    works = {}
    for rank, numbers in enumerate(drawn["together"]):
        for work, start, length in zip(numbers[0::3], numbers[1::3], numbers[2::3]):
            ends.append(start + length)
            if rank == 0:
                kind = drawn["works"][work].split()[0]
                works[kind] = works.get(kind, 0) + 1e-6 * length
    table = json.loads(call([find_pipewright(), "schedules", path, "--table", "json"]))
    return 1e-6 * max(ends), table[0]["step"], works


def predicted_exposed(loops, group, backward, reduction):
    """Of the rank that ends last: the gradients of its stage k are whole `k * group` backwards
    before its end, and each stage is summed in `reduction` seconds, one after the other."""
    return max((k + 1) * reduction - k * group * backward for k in range(loops))


def study(a, schedule, zero, micro_batches, model, folder, machine):
    loops = a.loops if schedule in ("interleaved", "breadth-first") else 1
    whole = json.loads(call([find_pipewright(), "plan", model, "--json", "--ranks", a.ranks,
                   "--data-parallel", a.replicas, "--loops", loops, "--schedule", schedule,
                   "--micro-batches", micro_batches, "--micro-batch-size", a.samples, "--zero", zero,
                   "--bucket-size", a.bucket_size,
                   "--loss", "mse", "--optimizer", "adamw", "--precision", "bf16",
                   "--machine", machine]))
    plan = whole["schedule_plan"]
    costs = plan["costs"]
    step, alone, works = simulate(plan, folder)
    busy = max(rank["predicted_busy_seconds"] for rank in whole["ranks"])
    sums = works.get("all-reduce", 0) + works.get("reduce-scatter", 0)
    group = {"interleaved": a.ranks, "breadth-first": micro_batches}.get(schedule, 0)
    formula = predicted_exposed(loops, group, costs["stages"][0]["backward"], sums / loops)
    return {"machine": a.machine, "schedule": schedule, "zero": zero, "micro_batches": micro_batches,
            "samples_per_gpu": micro_batches * a.samples / a.ranks, "step": step, "busy": busy,
            "bubble": alone - busy, "exposed": step - alone, "sums": sums,
            "copies": works.get("all-gather", 0),
            "formula": formula if zero == 0 and a.bucket_size == "none" else None,
            "arena": max(rank["arena_bytes"] for rank in whole["ranks"]),
            "planned_step": whole["predicted_step_seconds"]}


def print_table(rows, heading, cell):
    """A line for each schedule and level of ZeRO, a column for each batch."""
    batches = sorted({row["samples_per_gpu"] for row in rows})
    cells = {(row["zero"], row["schedule"], row["samples_per_gpu"]): cell(row) for row in rows}
    print(f"\n| {heading} | " + " | ".join(f"{batch:g}" for batch in batches) + " |")
    print("|---" * (len(batches) + 1) + "|")
    for zero in sorted({row["zero"] for row in rows}):
        for schedule in SCHEDULES:
            line = [cells.get((zero, schedule, batch), "") for batch in batches]
            if any(line):
                print(f"| {schedule}, ZeRO-{zero} | " + " | ".join(line) + " |")


def exposed_cell(row):
    formula = f" ({1e3 * row['formula']:.0f})" if row["formula"] is not None else ""
    hidden = max(0, 1 - row["exposed"] / (row["sums"] + row["copies"]))
    return f"{1e3 * row['exposed']:.0f}{formula}, {hidden:.0%}"


def print_drawing(rows, zero):
    """Shares of the ideal step from below to above, samples per GPU to the right."""
    shares = {(row["schedule"], row["samples_per_gpu"]): row["busy"] / row["step"]
              for row in rows if row["zero"] == zero}
    batches = sorted({batch for _, batch in shares})
    print(f"\nZeRO-{zero}: " + ", ".join(f"{LETTERS[name]} {name}" for name in SCHEDULES))
    print("```")
    levels = {key: round(20 * share) for key, share in shares.items()}
    for level in range(max(levels.values()), min(levels.values()) - 1, -1):
        cells = ["".join(LETTERS[name] for name in SCHEDULES if levels.get((name, batch)) == level)
                 for batch in batches]
        line = "".join(cell.center(10) for cell in cells)
        print(f"{level * 5:3d} % |{line}".rstrip())
    print("      +" + "-" * 10 * len(batches))
    print("       " + "".join(f"{batch:g}".center(10) for batch in batches).rstrip())
    print("```")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", choices=sorted(MACHINES), default="v100")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    parser.add_argument("--zero", default="0,1,2,3")
    parser.add_argument("--micro-batches", default="8,16,32,64")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--loops", type=int, default=4, help="of schedules that have them")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--samples", type=int, default=1, help="of a micro-batch")
    parser.add_argument("--bucket-size", default="none", help="of sums inside the last backward")
    parser.add_argument("--save", help="where to add each row as a line of JSON")
    parser.add_argument("--load", help="print what was saved")
    a = parser.parse_args()
    rows = []
    if a.load:
        rows = [json.loads(line) for line in Path(a.load).read_text().splitlines()]
    else:
        with tempfile.TemporaryDirectory() as folder:
            machine = write_machine(a.machine, folder, a.ranks)
            model = Decoder(a.layers, a.width, a.heads, a.positions).write(folder)
            for micro_batches in map(int, a.micro_batches.split(",")):
                for schedule in a.schedules.split(","):
                    for zero in map(int, a.zero.split(",")):
                        try:
                            row = study(a, schedule, zero, micro_batches, model, folder, machine)
                        except Failure as failure:
                            print(f"{schedule}, ZeRO-{zero}, {micro_batches}: {failure}", file=sys.stderr)
                            continue
                        rows.append(row)
                        if a.save:
                            with open(a.save, "a") as file:
                                file.write(json.dumps(row) + "\n")
    print_table(rows, "step ms, share of the ideal",
                lambda row: f"{1e3 * row['step']:.0f}, **{row['busy'] / row['step']:.0%}**")
    print_table(rows, "exposed ms (formula), hidden", exposed_cell)
    print_table([row for row in rows if row["zero"] == rows[0]["zero"]], "bubble ms", lambda row: f"{1e3 * row['bubble']:.0f}")
    print_table(rows, "GB of the fullest rank", lambda row: f"{row['arena'] / 1e9:.1f}")
    for zero in sorted({row["zero"] for row in rows}):
        print_drawing(rows, zero)


if __name__ == "__main__":
    exit_with(main)
