#!/usr/bin/python3
"""Our program beside PyTorch: same model, data, optimizer, threads.

    tools/bench/against_torch.py [MODEL ...] [--threads 1,2] [--rounds 7]
        [--python PYTHON] [--before PIPEWRIGHT] [--processor]

The models are those of contests.py. Rounds alternate (ours, PyTorch eager, PyTorch compile, ours,
...) in one run, because the machine's speed drifts; a probe of the core's multiply-add peak stands
beside each round. Prints a Markdown table of medians and the median of the ratios; the peer is the
faster of PyTorch's two modes. With --before, programs of another build of the compiler alternate
with them. With --processor times are those of the processor, which other processes on the same
cores change less; where threads wait for each other it counts waiting too.

Needs a built Pipewright and a Python with PyTorch, best the newest wheel of PyPI, onnx and onnxscript:

    python3 -m venv venv && venv/bin/pip install torch onnx onnxscript numpy
    tools/bench/against_torch.py --python venv/bin/python
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from contests import CONTESTS  # noqa: E402
from pipetools import bench  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import ROOT, Failure, call, exit_with  # noqa: E402

MODES = ("eager", "compile")


def torch_environment(threads):
    environment = dict(os.environ)
    environment.update(
        OMP_NUM_THREADS=str(threads),
        # An allocator that keeps its pages; PyTorch frees a step's memory in each step.
        MALLOC_MMAP_THRESHOLD_="2000000000", MALLOC_TRIM_THRESHOLD_="4000000000",
        MALLOC_TOP_PAD_="100000000")
    return environment


class Peer:
    """A process that trains with PyTorch on some cores when it is asked to."""

    def __init__(self, python, name, threads, mode, folder, cores=None, more=()):
        self.process = subprocess.Popen(
            ["taskset", "-c", cores or cores_of(threads), python,
             str(ROOT / "tools/bench/torch_peer.py"), name, str(threads), mode, folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**torch_environment(threads), **dict(more)})
        if self.process.stdout.readline().strip() != "ready":
            raise Failure(f"PyTorch ({mode}) does not train {name}")

    def milliseconds(self, steps, of_processor):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        times = [float(t) for t in self.process.stdout.readline().split()]
        return statistics.median(times[1 if of_processor else 0::2])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def cores_of(threads):
    return f"0-{threads - 1}"


def our_seconds(contest, program, data, threads, of_processor):
    if of_processor:
        return bench.step_processor_seconds(program, contest.steps, cores_of(threads), threads, data)
    return bench.step_seconds(program, contest.steps + 1, cores_of(threads), threads, data)


def measure(name, threads, programs, arguments, probe):
    """Milliseconds of each contestant in each round, and the probe's figures."""
    contest = CONTESTS[name]
    folder = tempfile.mkdtemp()
    data = contest.data(folder)
    peers = {mode: Peer(arguments.python, name, threads, mode, folder) for mode in MODES}
    times = {key: [] for key in (*programs, *MODES)}
    probes = []
    for _ in range(arguments.rounds):
        probes.append(float(call(["taskset", "-c", "0", probe])))
        for key, program in programs.items():
            times[key].append(1e3 * our_seconds(contest, program, data, threads,
                                                arguments.processor))
        for mode, peer in peers.items():
            times[mode].append(peer.milliseconds(contest.steps, arguments.processor))
    for peer in peers.values():
        peer.close()
    return times, probes


def ratios(numerators, denominators):
    return with_range([a / b for a, b in zip(numerators, denominators)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[], metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--before", help="another pipewright, to compare with")
    parser.add_argument("--processor", action="store_true")
    arguments = parser.parse_args()
    work = tempfile.mkdtemp()
    probe = os.path.join(work, "peak_fma")
    call(["clang++-22", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast",
          ROOT / "tools/bench/peak_fma.cpp", "-o", probe])
    columns = ["model", "threads", "probe GFLOP/s per core", "ours ms", "eager ms", "compile ms",
               "the better of PyTorch / ours"]
    if arguments.before:
        columns.append("before / ours")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in arguments.models or list(CONTESTS):
        onnx = os.path.join(work, name + ".onnx")
        call([arguments.python, ROOT / "tools/reference/export_models.py", name, onnx],
             "the export")
        programs = {}
        for key, compiler in [("ours", None), ("before", arguments.before)]:
            if key == "ours" or compiler:
                programs[key] = os.path.join(work, f"{name}-{key}")
                bench.compile_model(onnx, programs[key], "--ranks", "1", "--micro-batches", "1",
                                    *CONTESTS[name].compile_options(), pipewright=compiler)
        for threads in [int(t) for t in arguments.threads.split(",")]:
            times, probes = measure(name, threads, programs, arguments, probe)
            medians = {key: statistics.median(values) for key, values in times.items()}
            peer = min(MODES, key=medians.get)
            row = [name, str(threads), f"{statistics.median(probes):.0f}",
                   *(f"{medians[key]:.0f}" for key in ("ours", *MODES)),
                   ratios(times[peer], times["ours"])]
            if arguments.before:
                row.append(ratios(times["before"], times["ours"]))
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
