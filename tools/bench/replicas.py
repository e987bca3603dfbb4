#!/usr/bin/python3
"""What data parallelism pays: D replicas of one rank, each on a core, against one.

    tools/bench/replicas.py [--model NAME] [--replicas 2] [--rounds 7] [--python PYTHON]

The model is one of contests.py; each replica trains on the batch that it has there. Rounds
alternate in one run: one program on one core; D of these at once, a core each, that know nothing
of each other, which is the most that the machine lets D replicas reach; D replicas as threads, one
core each, with all of the optimizer's states, with a part each (ZeRO-1), and with sums in buckets
beside the backward;
PyTorch's DistributedDataParallel over gloo, D processes with one thread and one core each, eager
and compiled. Prints a Markdown table of samples per second, and the medians of ratios: against one
core, and against the faster of PyTorch's two. Needs D idle cores, a built Pipewright, and a Python
with PyTorch, onnx and onnxscript (see against_torch.py).
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from against_torch import MODES, Peer, torch_environment  # noqa: E402
from contests import CONTESTS  # noqa: E402
from pipetools import bench  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import ROOT, call, exit_with  # noqa: E402


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Replicas:
    """Processes that train one model together; the first one is asked."""

    def __init__(self, python, name, count, mode, folder):
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                  "WORLD_SIZE": str(count)}
        self.others = [
            subprocess.Popen(
                ["taskset", "-c", str(rank), python, str(ROOT / "tools/bench/torch_peer.py"), name, "1",
                 mode, tempfile.mkdtemp()],
                stdin=subprocess.DEVNULL, env={**torch_environment(1), **shared, "RANK": str(rank)})
            for rank in range(1, count)]
        self.first = Peer(python, name, 1, mode, folder, "0", {**shared, "RANK": "0"})

    def milliseconds(self, steps):
        return self.first.milliseconds(steps, False)

    def close(self):
        self.first.close()
        for process in self.others:
            process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt-s")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--buckets", default="4MiB", help="sums inside the backward, for a row more")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", default="/usr/bin/python3")
    a = parser.parse_args()
    contest = CONTESTS[a.model]
    work = tempfile.mkdtemp()
    onnx = os.path.join(work, "model.onnx")
    call([a.python, ROOT / "tools/reference/export_models.py", a.model, onnx], "the export")
    programs = {"1 core": (), "replicas": ("--data-parallel", a.replicas),
                "replicas, ZeRO-1": ("--data-parallel", a.replicas, "--zero", "1"),
                f"replicas, buckets of {a.buckets}": ("--data-parallel", a.replicas,
                                                      "--bucket-size", a.buckets)}
    for name, options in programs.items():
        bench.compile_model(onnx, os.path.join(work, name), "--ranks", 1, "--micro-batches", 1,
                            *contest.compile_options(), *options)
    cores = f"0-{a.replicas - 1}"
    peers = {f"DDP {mode}": Replicas(a.python, a.model, a.replicas, mode, work) for mode in MODES}
    # Ours and the peers' samples are random ones of the same shape.
    data = [f"{each.split('=')[0]}=random:{contest.batch * a.replicas * 4}"
            for each in contest.data(work)]
    apart = f"{a.replicas} apart"
    rates = {name: [] for name in ("1 core", apart, *programs, *peers)}
    for _ in range(a.rounds):
        for name in programs:
            count, on = (1, "0") if name == "1 core" else (a.replicas, cores)
            seconds = bench.step_seconds(os.path.join(work, name), contest.steps + 1, on, data=data)
            rates[name].append(count * contest.batch / seconds)
        with ThreadPoolExecutor(a.replicas) as pool:
            steps = pool.map(lambda core: bench.step_seconds(
                os.path.join(work, "1 core"), contest.steps + 1, str(core), data=data),
                range(a.replicas))
            rates[apart].append(sum(contest.batch / seconds for seconds in steps))
        for name, peer in peers.items():
            rates[name].append(1e3 * a.replicas * contest.batch / peer.milliseconds(contest.steps))
    for peer in peers.values():
        peer.close()
    best = max(peers, key=lambda name: statistics.median(rates[name]))

    def ratio(name, other):
        return with_range([x / y for x, y in zip(rates[name], rates[other])])
    print(f"| {a.model}, {a.replicas} replicas | samples/s | times one core | times {best} |")
    print("|---|---|---|---|")
    for name, values in rates.items():
        print(f"| {name} | {statistics.median(values):.1f} | {ratio(name, '1 core')} | {ratio(name, best)} |")


if __name__ == "__main__":
    exit_with(main)
