#!/usr/bin/python3
"""What searches for clusters take: `pipewright plan --search` for large decoders, one after the other,
with processor time and memory of each.

    tools/bench/cluster_search.py [gpt-3] [gpt-64b] [llama-70b]

Needs pipewright (PATH, or the build of this repository) and nothing else. Models have no embedding
and no head, and one content for all weights, which nobody reads."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.onnx_models import Decoder  # noqa: E402
from pipetools.running import Failure, exit_with, find_pipewright  # noqa: E402


class Llama(Decoder):
    """RMS norms, rotary positions, grouped queries, a gated perceptron, no biases (Touvron et al.,
    "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023, for 70 billion parameters)."""

    OPSET = 23

    def __init__(self, layers, width, heads, positions, groups, hidden):
        self.heads, self.groups, self.hidden = heads, groups, hidden
        self.inputs = {"at": (self.INT64, (positions,))}
        super().__init__(layers, width, heads, positions)

    def begin(self, positions):
        half = self.width // self.heads // 2
        for name in ("cos", "sin"):
            self.constant(name, [positions, half], self.FLOAT, bytes(4 * positions * half))

    def linear(self, name, value, inputs, outputs):
        return self.node("MatMul", name, value, self.weight(name + ".weight", inputs, outputs))

    def norm(self, name, value):
        return self.node("RMSNormalization", name, value, self.weight(name + ".weight", self.width), axis=-1)

    def layer(self, name, value):
        width, few = self.width, self.width // self.heads * self.groups
        norm = self.norm(name + "ln1", value)

        def turned(part, size, heads):
            return self.node("RotaryEmbedding", name + part + ".at", self.linear(name + part, norm, width, size),
                             "cos", "sin", "at", num_heads=heads)
        mixed = self.node("Attention", name + "mixed", turned("q", width, self.heads),
                          turned("k", few, self.groups), self.linear(name + "v", norm, width, few),
                          is_causal=1, q_num_heads=self.heads, kv_num_heads=self.groups)
        value = self.node("Add", name + "attended", value, self.linear(name + "proj", mixed, width, width))
        norm = self.norm(name + "ln2", value)
        gate = self.linear(name + "gate", norm, width, self.hidden)
        gate = self.node("Mul", name + "swish", gate, self.node("Sigmoid", name + "sigmoid", gate))
        up = self.node("Mul", name + "gated", gate, self.linear(name + "up", norm, width, self.hidden))
        return self.node("Add", name + "out", value, self.linear(name + "down", up, self.hidden, width))


# By name: how the model is made, workers, samples of a step.
CASES = {
    "gpt-3": (lambda: Decoder(96, 12288, 96, 2048), 1024, 1536),
    "gpt-64b": (lambda: Decoder(80, 8192, 64, 4096), 256, 512),
    "llama-70b": (lambda: Llama(80, 8192, 64, 4096, 8, 28672), 256, 512),
}


def search(name, folder):
    make, workers, samples = CASES[name]
    command = [find_pipewright(), "plan", make().write(folder), "--loss", "mse", "--optimizer", "adamw",
               "--target", "cuda", "--precision", "bf16", "--machine", "h100-bf16",
               "--memory-limit", "72GB", "--search", "--workers", str(workers), "--batch", str(samples)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise Failure(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    best = next(line for line in output.splitlines() if re.match(r"\W*\d+ x \d+ ", line))
    return (f"| {name} | {workers:,}, {samples:,} | {usage.ru_utime:.0f} s | "
            f"{usage.ru_maxrss / 1024:.0f} MB | `{' '.join(best.split())}` |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*CASES, []], metavar="NAME", help=", ".join(CASES))
    names = parser.parse_args().names or CASES
    print("| model | workers, samples | user | peak memory | best: ranks x replicas, ZeRO, ... |")
    print("|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(search(name, folder), flush=True)


if __name__ == "__main__":
    exit_with(main)
