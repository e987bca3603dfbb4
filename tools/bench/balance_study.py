#!/usr/bin/python3
"""How well methods of cutting balance a pipeline.

    tools/bench/balance_study.py MODEL [--batch 128] [--ranks 2,4] [--micro-batches 1,8,16]
                                 [--rounds 3] [--picture OUT.svg]
    tools/bench/balance_study.py MODEL --predicted cpu,h100-bf16 [--ranks 2,3,4,5,6,7,8]
                                 [--schedules 1f1b] [--micro-batch-size 16]
                                 [--loss softmax-cross-entropy]

MODEL is a .onnx file, or gpt-s, gpt2, resnet50, unet or vgg19, which this script writes. For each
number of micro-batches of one batch, `pipewright profile` measures the model's modules; for each
cut, one rank runs the stages of all ranks one after the other, alone, and `plan --task-times`
simulates 1F1B with the medians. With 2 ranks the pipeline runs as well, a core for each rank. Steps
are relative to all work on one core, so that K ranks can reach 1/K. Prints a Markdown table for each
number of ranks.

With --predicted nothing runs: a row for each machine and schedule says what a step with twice as
many micro-batches as ranks is predicted to take if stages have as many operations (`flops`), how
much less of it the cut of `step` takes, and how much less than the fastest of all methods that
need no times.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools import bench  # noqa: E402
from pipetools.onnx_models import MODELS  # noqa: E402
from pipetools.running import Failure, call, exit_with, find_pipewright  # noqa: E402

# Behind a colon stands the file of a profile.
METHODS = ["uniform", "parameters", "flops", "time:", "step", "step:", "memory",
           "deepspeed-uniform", "deepspeed-parameters", "torchgpipe-size", "torchgpipe-time:"]
STEPS = 5


def plan(*words):
    text = call([find_pipewright(), "plan", *words, "--json"], "plan", timeout=1800)
    # Behind a remark on the cut.
    return json.loads(text[text.index("{"):])


class Study:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.work = work
        self.known = {}

    def options(self, micro_batches):
        return [self.arguments.model, "--loss", "softmax-cross-entropy", "--optimizer",
                "sgd,momentum=0.9", "--micro-batch-size", self.arguments.batch // micro_batches,
                "--micro-batches", micro_batches, "--machine", "cpu"]

    def pipewright(self, *words):
        return call([find_pipewright(), *map(str, words)], words[0], timeout=1800)

    def profile(self, micro_batches):
        times = os.path.join(self.work, f"times-{micro_batches}.json")
        options = self.options(micro_batches)[:-4] + ["--micro-batches", 4]
        self.pipewright("profile", *options, "-o", times)
        return times

    def plan(self, micro_batches, ranks, balance, *more):
        return plan(*self.options(micro_batches), "--ranks", ranks, "--balance", balance, *more)

    def measure(self, micro_batches, ranks, balance):
        """Of a cut: simulated and measured seconds, all work's seconds, the largest arena."""
        plan = self.plan(micro_batches, ranks, balance)
        cut = tuple(stage["layers"] for stage in plan["stages"])
        key = (micro_batches, ranks, cut)
        if key not in self.known:
            self.known[key] = self.measure_cut(micro_batches, ranks, balance, plan)
        return self.known[key]

    def measure_cut(self, micro_batches, ranks, balance, plan):
        alone = os.path.join(self.work, "alone")
        data = [f"{name}=random" for name in plan["inputs"]]
        trace = os.path.join(self.work, "trace.json")
        options = [*self.options(micro_batches), "--balance", balance]
        self.pipewright("compile", *options, "--ranks", 1, "--loops", ranks, "--schedule",
                        "interleaved", "-o", alone)
        work = bench.step_seconds(alone, STEPS, "0", data=data, warm_up=2, options=[
            "--trace", trace, "--trace-steps", str(STEPS - 2)])
        simulated = self.plan(micro_batches, ranks, balance, "--task-times", trace)
        measured = None
        if ranks == 2:
            together = os.path.join(self.work, "together")
            self.pipewright("compile", *options, "--ranks", ranks, "-o", together)
            measured = statistics.median(
                bench.step_seconds(together, STEPS, "0,1", data=data, warm_up=2)
                for _ in range(self.arguments.rounds))
        return {"simulated": simulated["predicted_step_seconds"], "measured": measured, "work": work,
                "arena": max(rank["arena_bytes"] for rank in plan["ranks"])}


def predicted_seconds(a, machine, schedule, ranks, balance):
    """Infinite where the model cannot be cut so."""
    name, _, precision = machine.partition("-")
    words = ["--precision", precision] if precision in ("tf32", "bf16") else []
    try:
        return plan(a.model, *words, "--loss", a.loss, "--ranks", ranks, "--micro-batches", 2 * ranks,
                    "--micro-batch-size", a.micro_batch_size, "--schedule", schedule, "--machine",
                    machine, "--balance", balance)["predicted_step_seconds"]
    except Failure:
        return math.inf


def predicted_row(a, machine, schedule, ranks):
    """Milliseconds with the cut of `flops`, and what `step` saves of them and of the fastest's."""
    cells = []
    for count in ranks:
        seconds = {balance: predicted_seconds(a, machine, schedule, count, balance)
                   for balance in METHODS if not balance.endswith(":")}
        step = seconds.pop("step")
        flops, least = seconds["flops"], min(seconds.values())
        saved = (f"{round(1 - step / other, 4) + 0:.1%}" for other in (flops, least))
        cells.append(f"{1e3 * flops:.4g}, " + ", ".join(saved))
    return f"| {a.name}, {machine}, {schedule} | " + " | ".join(cells) + " |"


def bar_chart(rows, path):
    """Steps of the methods as bars, a group for each number of ranks and micro-batches."""
    left, height, width = 190, 16, 420
    lines, y = [], 20
    most = max(share for _, bars in rows for _, share in bars)
    for title, bars in rows:
        lines.append(f'<text x="8" y="{y}" font-weight="bold">{title}</text>')
        y += 8
        best = min(share for _, share in bars)
        for method, share in bars:
            color = "#2a7" if share <= best * 1.02 else "#789"
            length = width * share / most
            lines.append(f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{method}</text>'
                         f'<rect x="{left}" y="{y + 2}" width="{length:.0f}" height="{height - 4}" '
                         f'fill="{color}"/><text x="{left + length + 4:.0f}" y="{y + 12}">'
                         f'{share:.2f}</text>')
            y += height
        y += 24
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y}" '
        f'font-family="sans-serif" font-size="11">\n' + "\n".join(lines) + "\n</svg>\n",
        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--ranks")
    parser.add_argument("--micro-batches", default="1,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--picture")
    parser.add_argument("--predicted", help="machines; run nothing")
    parser.add_argument("--schedules", default="1f1b", help="of --predicted")
    parser.add_argument("--micro-batch-size", type=int, default=16, help="of --predicted")
    parser.add_argument("--loss", default="softmax-cross-entropy", help="of --predicted")
    arguments = parser.parse_args()
    arguments.name = Path(arguments.model).stem
    with tempfile.TemporaryDirectory() as folder:
        if arguments.model in MODELS:
            deviation = 0 if arguments.predicted else 0.02
            arguments.model = MODELS[arguments.model]().write(folder, deviation)
        run(arguments)


def run(arguments):
    ranks_asked = arguments.ranks or ("2,3,4,5,6,7,8" if arguments.predicted else "2,4")
    ranks_asked = [int(count) for count in ranks_asked.split(",")]
    if arguments.predicted:
        print("| ranks | " + " | ".join(map(str, ranks_asked)) + " |")
        print("|---" * (len(ranks_asked) + 1) + "|")
        for machine in arguments.predicted.split(","):
            for schedule in arguments.schedules.split(","):
                print(predicted_row(arguments, machine, schedule, ranks_asked), flush=True)
        return
    groups = []
    with tempfile.TemporaryDirectory() as work:
        study = Study(arguments, work)
        counts = [int(count) for count in arguments.micro_batches.split(",")]
        times = {count: study.profile(count) for count in counts}
        for ranks in ranks_asked:
            measured = " (measured)" if ranks == 2 else ""
            print(f"\n| {ranks} ranks | " + " | ".join(
                f"M={count}{measured} | MB" for count in counts) + " |")
            print("|---|" + "---|---|" * len(counts))
            shares = {count: [] for count in counts}
            for method in arguments.methods.split(","):
                cells = []
                for count in counts:
                    file = times[count] if method.endswith(":") else ""
                    one = study.measure(count, ranks, method + file)
                    share = one["simulated"] / one["work"]
                    shares[count].append((method.removesuffix(":"), share))
                    real = f" ({one['measured'] / one['work']:.2f})" if one["measured"] else ""
                    cells.append(f"{share:.2f}{real} | {one['arena'] / 1e6:.0f}")
                name = method.removesuffix(":") + (" (times)" if method == "step:" else "")
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            groups += [(f"{ranks} ranks, {count} micro-batch{'es' * (count > 1)}", shares[count])
                       for count in counts]
    if arguments.picture:
        bar_chart(groups, arguments.picture)


if __name__ == "__main__":
    exit_with(main)
