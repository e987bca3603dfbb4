#!/usr/bin/python3
"""How long `plan` takes of very many micro-batches and ops, and `compile` of very many ops.

    tools/bench/planning.py [--micro-batches N,N...] [--ops N,N...]

A perceptron on 2 ranks, and a chain of Relus between two matrix products. Prints a Markdown table
of processor seconds and of the peak of resident memory. The goal is less than 10 s and 2 GB for
the most micro-batches that are accepted (32,768 with 2 stages) and for 10,000 ops, compiled too.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.running import Failure, exit_with, find_pipewright  # noqa: E402

OPTIONS = ["--micro-batch-size=2", "--loss=softmax-cross-entropy"]


def model_text(relus):
    """A model of 8 numbers: a product, so many Relus, a product."""
    def weight(name, *shape):
        count = 1
        for size in shape:
            count *= size
        return f"float{list(shape)} {name} = {{{', '.join(['0.1'] * count)}}}"
    lines = [f"  r{i + 1} = Relu(r{i})" for i in range(relus)]
    return "\n".join([
        '<ir_version: 9, opset_import: ["" : 17]>', "chain (float[N, 8] x) => (float[N, 4] y)",
        f"<{weight('w', 8, 8)}, {weight('b', 8)}, {weight('v', 8, 4)}>", "{",
        "  r0 = Gemm(x, w, b)", *lines, f"  y = MatMul(r{relus}, v)", "}"])


def measure(command, model, options):
    """Processor seconds and megabytes of a plan, or of a program with all tools that build it."""
    if command == "compile":
        options = [*options, "-o", f"{model}.program"]
    command = [find_pipewright(), command, model, *OPTIONS, *options]
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.environ["PIPEWRIGHT_CACHE_DIR"] = os.path.dirname(model)
        os.dup2(null, 1)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise Failure(f"ended with status {status}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--micro-batches", default="2048,8192,32768")
    parser.add_argument("--ops", default="1000,10000")
    arguments = parser.parse_args()
    print("| command | processor s | MB |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cases = [("plan", 1, f"{number} micro-batches on 2 ranks", f"--micro-batches={number}", "--ranks=2")
                 for number in arguments.micro_batches.split(",")]
        cases += [(command, int(number), f"{number} Relus on 1 rank", "--ranks=1")
                  for command in ("plan", "compile") for number in arguments.ops.split(",")]
        for command, relus, what, *options in cases:
            model = os.path.join(folder, f"chain{relus}.onnxtext")
            Path(model).write_text(model_text(relus) + "\n")
            seconds, megabytes = measure(command, model, options)
            print(f"| {command}: {what} | {seconds:.1f} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
