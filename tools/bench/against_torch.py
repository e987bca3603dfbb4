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
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
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


def run_ours(train, name, threads, cores, steps):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        command = ["taskset", "-c", cores, train, "--steps", str(steps + 1), "--lr", "1e-4",
                   "--threads-per-rank", str(threads), "--save", "none", "--log", log.name]
        for data in DATA[name]:
            command += ["--data", data]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stdout + result.stderr)
        with open(log.name) as file:
            seconds = [float(s) for s in re.findall(r'"seconds":([0-9.e-]+)', file.read())]
    return [1e3 * s for s in seconds[1 : steps + 1]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    work = tempfile.mkdtemp()
    pipewright = os.path.join(ROOT, "build/tools/pipewright/pipewright")
    probe = os.path.join(work, "peak_fma")
    subprocess.run(["clang++-22", "-O3", "-march=native", "-mprefer-vector-width=512",
                    "-ffp-contract=fast", os.path.join(ROOT, "tools/bench/peak_fma.cpp"),
                    "-o", probe], check=True)
    print("| model | threads | probe GFLOP/s per core | ours ms | PyTorch ms | PyTorch / ours |")
    print("|---|---|---|---|---|---|")
    for name in arguments.models or list(STEPS):
        onnx = os.path.join(work, name + ".onnx")
        subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tools/reference/export_models.py"),
                        name, onnx], check=True, capture_output=True)
        out = os.path.join(work, name)
        subprocess.run([pipewright, "compile", onnx, "-o", out, "--ranks", "1",
                        "--micro-batches", "1", "--loss", "softmax-cross-entropy"]
                       + COMPILE[name], check=True, capture_output=True)
        for threads in [int(t) for t in arguments.threads.split(",")]:
            cores = f"0-{threads - 1}"
            peer = subprocess.Popen(
                ["taskset", "-c", cores, "/usr/bin/python3",
                 os.path.join(ROOT, "tools/bench/torch_peer.py"), name, str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=torch_environment(threads))
            steps = STEPS[name]
            probes, ours, theirs, ratios = [], [], [], []
            for _ in range(arguments.rounds):
                probes.append(float(subprocess.run(
                    ["taskset", "-c", "0", probe], capture_output=True, text=True).stdout))
                mine = statistics.median(
                    run_ours(os.path.join(out, "train"), name, threads, cores, steps))
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
                  f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) |",
                  flush=True)


if __name__ == "__main__":
    main()
