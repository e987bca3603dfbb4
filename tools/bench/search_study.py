#!/usr/bin/python3
"""Whether searches find the fastest plan: `pipewright plan --search` of small problems, compared with
all ways to use the workers, each planned by itself.

    tools/bench/search_study.py [--problems 50] [--first 0] [--seed 33] [--drawn 0]

Problems are drawn: a model of the tests or a small decoder, 2 to 4 workers, 2 to 8 samples, a
machine, an optimizer, and no limit of memory or a share of what the fastest plan without one
takes. With --drawn, in place of all ways so many whose schedule, stages, cut and recomputation are
drawn by name. Prints a row of a Markdown table for each, and the options of a way that is faster
than what the search found. Ends with 1 if there is any.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.onnx_models import Decoder  # noqa: E402
from pipetools.running import ROOT, exit_with  # noqa: E402
from pipetools.ways import by_brute_force, choose_schedules, draw_ways, every_way, is_slower, plan  # noqa: E402

MODELS = ["mlp.train", "lenet.train", "gpt2.train", "bert.train", "byte-gpt", "decoder"]
MACHINES = [["cpu"], ["h100-f32", "--target", "cuda"], ["v100", "--target", "cuda"], ["cpu-cluster"]]


class Problem:
    def __init__(self, draw, work):
        self.name = draw.choice(MODELS)
        self.machine = draw.choice(MACHINES)
        self.optimizer = draw.choice(["sgd", "sgd,momentum=0.9", "adamw"])
        self.workers = draw.choice([2, 3, 4])
        self.batch = self.workers * draw.choice([1, 2]) if self.workers > 2 else draw.choice([2, 4, 6])
        self.share = draw.choice([None, 1, 0.95, 0.9, 0.8, 0.7, 0.6])
        model, loss = ROOT / f"test/Inputs/models/{self.name}.onnx", "softmax-cross-entropy"
        layers, width = draw.choice([3, 4, 5]), draw.choice([32, 64])
        if self.name == "decoder":
            self.name, loss = f"decoder of {layers} x {width}", "mse"
            folder = Path(work) / f"{layers}-{width}"
            folder.mkdir(exist_ok=True)
            Decoder(layers, width, 4, 32).write(folder)
            model = folder / "model.onnx"
        self.common = [model, "--loss", loss, "--optimizer", self.optimizer, "--machine", *self.machine]

    def search(self, common):
        return plan(*common, "--search", "--workers", self.workers, "--batch", self.batch)

    def row(self, draw, drawn):
        """What it came to, and whether the search was beaten by all ways, or by so many that are drawn."""
        common, modes, limit = list(self.common), ("none", "auto"), "none"
        if self.share:
            whole = self.search(common)["planned"][0]["arena_bytes"]
            limit = int(self.share * whole)
            common += ["--memory-limit", f"{limit}B"]
            modes = ("none", "every:1", "full", "auto")
        begin = time.monotonic()
        found = self.search(common)
        seconds = time.monotonic() - begin
        ways = (list(draw_ways(draw, self.workers, self.batch, drawn)) if drawn else
                choose_schedules(every_way(self.workers, self.batch, modes)))
        fitting = by_brute_force(common, ways)
        best = found["planned"][0]["step_seconds"] if found else None
        least, way = fitting[0] if fitting else (None, None)
        beaten = is_slower(best, least)
        cells = [self.name, self.machine[0], self.optimizer, self.workers, self.batch, limit,
                 f"{len(fitting)} of {len(ways)}", *(f"{1e6 * step:.1f}" if step else "none fits" for step in (best, least)),
                 f"{seconds:.0f} s"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
        if beaten:
            print("  faster: " + " ".join(map(str, way)), flush=True)
        return beaten


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50, help="how many")
    parser.add_argument("--first", type=int, default=0, help="how many to leave out at first")
    parser.add_argument("--seed", type=int, default=33, help="of the problems")
    parser.add_argument("--drawn", type=int, default=0, help="ways of each problem, by name")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    print("| model | machine | optimizer | workers | samples | bytes | ways that fit | search, us | "
          "all ways, us | search takes |")
    print("|" + "---|" * 10)
    with tempfile.TemporaryDirectory() as work:
        problems = [Problem(draw, work) for _ in range(arguments.first + arguments.problems)]
        beaten = sum(one.row(draw, arguments.drawn) for one in problems[arguments.first:])
    print(f"{beaten} of {arguments.problems} searches are beaten")
    return beaten > 0


if __name__ == "__main__":
    exit_with(main)
