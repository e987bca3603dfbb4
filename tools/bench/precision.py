#!/usr/bin/python3
"""bf16 against float32 on the CPU: whole training steps, and where they end.

    tools/bench/precision.py MODEL.onnx [--micro-batch-size 8] [--threads 1,2] [--rounds 5]

MODEL is a language model; `tools/reference/export_models.py gpt-s gpt-s.onnx` writes
one whose time goes into matrix products. Programs of both precisions alternate in
one run. Prints a Markdown table of medians, and what this CPU has for bf16: AMX
(products four to seven times as fast as float32) or AVX-512 BF16 (up to twice).
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def compile_model(model, out, size, precision):
    command = [os.path.join(ROOT, "build/tools/pipewright/pipewright"), "compile", model, "-o", out,
               "--micro-batches", "2", "--micro-batch-size", str(size), "--precision", precision,
               "--loss", "softmax-cross-entropy", "--optimizer", "adamw"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)


def step_time(out, threads):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        result = subprocess.run(
            ["taskset", "-c", f"0-{threads - 1}", os.path.join(out, "train"), "--steps", "6",
             "--data", "tokens=random", "--data", "targets=random", "--lr", "1e-4",
             "--threads-per-rank", str(threads), "--save", "none", "--log", log.name],
            capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stdout + result.stderr)
        with open(log.name) as file:
            seconds = [float(s) for s in re.findall(r'"seconds":([0-9.e-]+)', file.read())]
    memory = re.search(r"planned ([0-9,]+)", result.stdout)
    return 1e3 * statistics.median(seconds[1:]), int(memory.group(1).replace(",", "")) / 2**20


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
        compile_model(a.model, os.path.join(work, precision), a.micro_batch_size, precision)
    print("| threads | f32 ms | bf16 ms | f32 / bf16 | f32 MiB | bf16 MiB |")
    print("|---|---|---|---|---|---|")
    for threads in map(int, a.threads.split(",")):
        times = {precision: [] for precision in precisions}
        memory = {}
        for _ in range(a.rounds):
            for precision in precisions:
                milliseconds, memory[precision] = step_time(os.path.join(work, precision), threads)
                times[precision].append(milliseconds)
        ratios = [f32 / bf16 for f32, bf16 in zip(times["f32"], times["bf16"])]
        print(f"| {threads} | {statistics.median(times['f32']):.0f} | "
              f"{statistics.median(times['bf16']):.0f} | **{statistics.median(ratios):.2f}** "
              f"({min(ratios):.2f} to {max(ratios):.2f}) | {memory['f32']:.0f} | "
              f"{memory['bf16']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
