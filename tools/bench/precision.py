#!/usr/bin/python3
"""bf16 against float32 on the CPU: whole training steps, and where they end.

    tools/bench/precision.py MODEL.onnx [--micro-batch-size 8] [--threads 1,2] [--rounds 5]

MODEL is a language model; `tools/reference/export_models.py gpt-s gpt-s.onnx` writes
one whose time goes into matrix products. Programs of both precisions alternate in
one run. Prints a Markdown table of medians, what the compiler predicted, and what
this CPU has for bf16: AMX (products four to seven times as fast as float32) or
AVX-512 BF16 (twice).

Times of steps are also taken in processor time, which other processes on the same
cores change less: that of a run of eleven steps less that of one step, by ten. Where
threads wait for each other it counts waiting too.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench, files  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import exit_with  # noqa: E402


def run(out, threads, steps, log):
    """One run: its output, and the processor time that it took."""
    return bench.processor_seconds_of(
        lambda: bench.train(out, steps, f"0-{threads - 1}", threads, log))


def measure(out, threads):
    """Milliseconds of a step on the clock, of the processor, and as predicted; MiB."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        once = run(out, threads, 1, log.name)[1]
        output, whole = run(out, threads, 11, log.name)
        seconds = files.read_seconds(log.name)
        predicted = next(record["predicted_step_seconds"] for record in
                         files.read_records([log.name]) if "predicted_step_seconds" in record)
    memory = re.search(r"planned ([0-9,]+)", output)
    return (1e3 * statistics.median(seconds[1:]), 1e3 * (whole - once) / 10, 1e3 * predicted,
            int(memory.group(1).replace(",", "")) / 2**20)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--micro-batch-size", type=int, default=8)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"flags\s*:(.*)", file.read()).group(1).split())
    print("This CPU has " + (", ".join(sorted(flags & {"amx_bf16", "avx512_bf16", "avx512f"})) or
                             "no AVX-512") + ".\n")
    work = tempfile.mkdtemp()
    precisions = ("f32", "bf16")
    for precision in precisions:
        bench.compile_model(a.model, os.path.join(work, precision), "--micro-batches", "2",
                            "--micro-batch-size", a.micro_batch_size, "--precision", precision,
                            "--optimizer", "adamw")
    print("| threads | | f32 ms | bf16 ms | f32 / bf16 |")
    print("|---|---|---|---|---|")
    for threads in map(int, a.threads.split(",")):
        rounds = [[measure(os.path.join(work, precision), threads) for precision in precisions]
                  for _ in range(a.rounds)]
        for kind, what in enumerate(("clock", "processor")):
            pairs = [(f32[kind], bf16[kind]) for f32, bf16 in rounds]
            ratios = [f32 / bf16 for f32, bf16 in pairs]
            f32, bf16 = (statistics.median(times) for times in zip(*pairs))
            print(f"| {threads} | {what} | {f32:.0f} | {bf16:.0f} | "
                  f"{with_range(ratios)} |", flush=True)
    f32, bf16 = rounds[-1]
    print(f"\nPredicted for one thread: {f32[2]:.0f} ms and {bf16[2]:.0f} ms. "
          f"Arenas: {f32[3]:.0f} MiB and {bf16[3]:.0f} MiB.")


if __name__ == "__main__":
    exit_with(main)
