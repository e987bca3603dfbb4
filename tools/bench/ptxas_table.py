#!/usr/bin/env python3
"""Registers and memory of GPU kernels, as ptxas sees them.

    tools/bench/ptxas_table.py [--ptxas PATH] [--check] OPT KERNELS.mlir

Compiles the kernels (functions of nn ops) by pipewright-opt for sm_80 and sm_90, assembles
them, and prints a Markdown table. With --check it fails if a kernel spills registers,
uses local memory or has a stack.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = (80, 90)
# Both say how many threads of a multiprocessor can be there at once.
REGISTERS_OF_SM = 65536
THREADS_OF_SM = 2048


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ptxas_table: {' '.join(command[:1])} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


def compile_ptx(opt, kernels, architecture):
    pipeline = f"builtin.module(pipewright-gpu-kernel-pipeline,kernel-print-ptx{{architecture={architecture}}})"
    with tempfile.NamedTemporaryFile() as ir:
        return run([opt, kernels, f"--pass-pipeline={pipeline}", "-o", ir.name]).stdout


def assemble(ptxas, ptx, architecture):
    """Entry name to its figures."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "kernels.ptx")
        source.write_text(ptx)
        report = run([ptxas, f"-arch=sm_{architecture}", "-v", str(source), "-o", str(pathlib.Path(folder, "kernels.cubin"))])
    threads = dict(re.findall(r"\.entry\s+([\w$]+)\(.*?\.maxntid\s+(\d+)", ptx, re.DOTALL))
    figures = {}
    for part in report.stderr.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]
        number = lambda pattern: int((re.search(pattern, part) or [0, 0])[1])
        figures[name] = {
            "threads": int(threads[name]),
            "registers": number(r"Used (\d+) registers"),
            "shared": number(r"(\d+) bytes smem"),
            "local": number(r"(\d+) bytes stack frame") + number(r"(\d+) bytes lmem"),
            "spills": number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        }
    return dict(reversed(figures.items()))


def occupancy(figures):
    """Per cent of a multiprocessor's threads that registers leave room for."""
    warps = figures["threads"] // 32
    per_warp = -(-figures["registers"] * 32 // 256) * 256
    blocks = min(REGISTERS_OF_SM // (per_warp * warps), THREADS_OF_SM // figures["threads"], 32)
    return 100 * blocks * figures["threads"] // THREADS_OF_SM


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("opt")
    parser.add_argument("kernels")
    options = parser.parse_args()
    tables = {}
    for architecture in ARCHITECTURES:
        ptx = compile_ptx(options.opt, options.kernels, architecture)
        tables[architecture] = assemble(options.ptxas, ptx, architecture)
    old, new = (tables[architecture] for architecture in ARCHITECTURES)
    print("| launch | threads of a block | registers sm_80, sm_90 | threads at once, by registers | shared memory | local memory | spills |")
    print("|---|---|---|---|---|---|---|")
    bad = []
    for name in sorted(old):
        a, b = old[name], new[name]
        local, spills = max(a["local"], b["local"]), max(a["spills"], b["spills"])
        print(f"| `{name}` | {a['threads']} | {a['registers']}, {b['registers']} | {occupancy(a)} %, {occupancy(b)} % | {b['shared']} | {local} | {spills} |")
        if local or spills:
            bad.append(name)
    if options.check and bad:
        sys.exit(f"ptxas_table: expected no local memory and no spills, but found them in {', '.join(bad)}")


if __name__ == "__main__":
    main()
