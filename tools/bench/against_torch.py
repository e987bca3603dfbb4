#!/usr/bin/python3
"""Our program beside PyTorch eager: same model, shapes, optimizer, threads.

    tools/bench/against_torch.py [gpt-s] [vgg19] [--threads 1,2] [--rounds 7]

Rounds alternate (ours, PyTorch, ours, ...) in one run, because the machine's
speed drifts; a probe of the core's multiply-add peak stands beside each
round. Prints a Markdown table of medians and the median of the ratios.

Needs Debian's python3-torch and python3-onnx, and a built Pipewright. PyTorch
gets what makes it fastest here: OpenBLAS with OpenMP threads where installed,
and an allocator that keeps its pages.
"""

import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.numbers import with_range  # noqa: E402
from pipetools.running import ROOT, call, exit_with  # noqa: E402

STEPS = {"gpt-s": 5, "vgg19": 3}
COMPILE = {
    "gpt-s": ["--micro-batch-size", "8", "--optimizer", "adamw"],
    "vgg19": ["--micro-batch-size", "32", "--optimizer", "sgd,momentum=0.9"],
}
DATA = {"gpt-s": ["tokens=random", "targets=random"], "vgg19": ["image=random", "targets=random"]}


def torch_environment(threads):
    environment = dict(os.environ)
    environment.update(
        OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
        # Left to itself OpenBLAS 0.3.21 takes newer Xeons for generic x86 and
        # runs at a fifth of their speed.
        OPENBLAS_CORETYPE="SkylakeX",
        MALLOC_MMAP_THRESHOLD_="2000000000", MALLOC_TRIM_THRESHOLD_="4000000000",
        MALLOC_TOP_PAD_="100000000")
    openmp = glob.glob("/usr/lib/*/openblas-openmp")
    if openmp:
        environment["LD_LIBRARY_PATH"] = openmp[0]
    return environment


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    work = tempfile.mkdtemp()
    probe = os.path.join(work, "peak_fma")
    call(["clang++-22", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast",
          ROOT / "tools/bench/peak_fma.cpp", "-o", probe])
    print("| model | threads | probe GFLOP/s per core | ours ms | PyTorch ms | PyTorch / ours |")
    print("|---|---|---|---|---|---|")
    for name in arguments.models or list(STEPS):
        onnx = os.path.join(work, name + ".onnx")
        call(["/usr/bin/python3", ROOT / "tools/reference/export_models.py", name, onnx],
             "the export")
        out = os.path.join(work, name)
        bench.compile_model(onnx, out, "--ranks", "1", "--micro-batches", "1", *COMPILE[name])
        for threads in [int(t) for t in arguments.threads.split(",")]:
            cores = f"0-{threads - 1}"
            peer = subprocess.Popen(
                ["taskset", "-c", cores, "/usr/bin/python3",
                 str(ROOT / "tools/bench/torch_peer.py"), name, str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=torch_environment(threads))
            steps = STEPS[name]
            probes, ours, theirs, ratios = [], [], [], []
            for _ in range(arguments.rounds):
                probes.append(float(call(["taskset", "-c", "0", probe])))
                mine = 1e3 * bench.step_seconds(out, steps + 1, cores, threads, DATA[name])
                peer.stdin.write(f"{steps}\n")
                peer.stdin.flush()
                other = statistics.median([float(t) for t in peer.stdout.readline().split()])
                ours.append(mine)
                theirs.append(other)
                ratios.append(other / mine)
            peer.stdin.close()
            peer.wait()
            print(f"| {name} | {threads} | {statistics.median(probes):.0f} | "
                  f"{statistics.median(ours):.0f} | {statistics.median(theirs):.0f} | "
                  f"{with_range(ratios)} |", flush=True)


if __name__ == "__main__":
    exit_with(main)
