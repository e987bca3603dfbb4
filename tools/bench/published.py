#!/usr/bin/python3
"""Published measurements of pipelines beside what the simulator says of the same configurations.

    tools/bench/published.py [--groups primus,zero-bubble,bubble-rates,bpipe,torchtitan,
                                       breadth-first] [--primus-micro-batches M]

Nothing is compiled or run: `pipewright schedules` simulates each schedule from times of one stage,
published ones where there are any, else those of a stage's operations; `pipewright estimate` takes
the utilization of a stage. Prints a Markdown table, of which `ratio` is predicted / published, and
for each group whether the predicted order of merit is the published one. Of breadth-first pipelines
only the order is published here: the paper's figure was not read off.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pipetools.running import call, exit_with, find_pipewright  # noqa: E402

# AMD, "Primus-Pipeline" (docs_deprecated/tech_blogs/primus_pipeline/primus_pipeline.md of
# AMD-AGI/Primus), table of Llama2-7B: MI300, one node, 8 ranks. Our name: tokens/s/device,
# max_memory (8.47 % of an MI300X's 192 GiB are 16.26: GiB).
PRIMUS = {"1f1b": (10057, 16.26), "interleaved": (10974, 21.40), "zb-h1": (11411, 16.59),
          "zb-v": (11347, 18.11), "v-half": (10894, 14.06), "v-min": (8897.2, 11.90)}
# The simulation that goes with it (primus/core/projection/configs/pp_simulation.yaml).
PRIMUS_MICRO_BATCHES = 32
# The same table's TFLOPS of 1f1b, 235.7, over its tokens: 23.44 GFLOP per token, which are 16 layers
# of Llama 2 7B (Touvron et al., arXiv 2307.09288: width 4096, perceptron 11008, 32000 tokens of
# vocabulary), its head and attention over 4096 positions, counted by Megatron's formula, to 0.1 %.
LAYERS, WIDTH, PERCEPTRON, VOCABULARY, POSITIONS = 16, 4096, 11008, 32000, 4096
# MI300X (data sheet): an Infinity Fabric link has 128 GB/s in both directions together. Seconds that
# a message takes beside, as MachineModel::h100 has them.
LINK, LINK_LATENCY = 64e9, 10e-6
# bf16 weight, f32 weight and gradient, two of Adam (Megatron-LM's page on its distributed optimizer,
# of one replica).
BYTES_OF_PARAMETER = 18

# Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241), table of throughput on A100 80 GB:
# layers per rank (where the first and the last have one less), ranks, samples of a micro-batch,
# micro-batches; samples per GPU and second of each schedule.
ZERO_BUBBLE_NAMES = ("zb-2p", "zb-1p", "1f1b", "interleaved")
ZERO_BUBBLE = [
    ("1.5B", 3, 8, 6, 24, (14.5, 12.9, 11.8, 13.1)), ("1.5B", 3, 8, 6, 32, (14.8, 13.4, 12.5, 13.4)),
    ("1.5B", 3, 8, 6, 64, (14.9, 14.2, 13.6, 13.9)), ("6.2B", 4, 8, 3, 24, (4.32, 3.88, 3.50, 4.01)),
    ("6.2B", 4, 8, 3, 32, (4.35, 4.00, 3.70, 4.08)), ("6.2B", 4, 8, 3, 64, (4.39, 4.20, 4.03, 4.19)),
    ("14.6B", 3, 16, 1, 48, (1.81, 1.61, 1.40, 1.54)), ("14.6B", 3, 16, 1, 64, (1.83, 1.67, 1.49, 1.59)),
    ("14.6B", 3, 16, 1, 128, (1.85, 1.76, 1.64, 1.66))]
# The same paper, tables of profiled times (milliseconds of F, I, W and a message) and of bubble
# rates; the times of the least micro-batches of a model stand for others where those are not here.
TIMES = {("1.5B", 24): (18.522, 18.086, 9.337, .601), ("1.5B", 32): (18.513, 18.086, 9.331, .626),
         ("1.5B", 64): (18.546, 18.097, 9.321, .762), ("6.2B", 24): (29.718, 29.444, 19.927, .527),
         ("14.6B", 48): (11.347, 11.248, 8.132, .377), ("28.3B", 96): (10.419, 10.207, 7.715, .408)}
BUBBLE_RATES = [
    ("6.2B", 8, 24, "1f1b", .2347), ("6.2B", 8, 24, "zb-h1", .1323), ("6.2B", 8, 24, "zb-h2", .0698),
    ("6.2B", 8, 24, "zb-2p", .0029), ("1.5B", 8, 24, "zb-1p", .1585), ("1.5B", 8, 24, "zb-2p", .0433),
    ("1.5B", 8, 32, "zb-1p", .1242), ("1.5B", 8, 32, "zb-2p", .0039), ("1.5B", 8, 64, "zb-1p", .0674),
    ("1.5B", 8, 64, "zb-2p", .0026), ("14.6B", 16, 48, "zb-1p", .1397), ("14.6B", 16, 48, "zb-2p", .0066),
    ("28.3B", 32, 96, "zb-1p", .1421), ("28.3B", 32, 96, "zb-2p", .0038)]

# "Re-evaluating the Memory-balanced Pipeline Parallelism: BPipe" (arXiv 2401.02088), table of MFU:
# 32 A100, 8 ranks of 4, 128 samples. Samples of a micro-batch, whether BPipe evicts; % of the whole
# model, % of one stage alone.
BPIPE_RANKS, BPIPE_BATCH = 8, 128
BPIPE = {
    "LLaMA 65B": [(1, False, 45.3, 51.1), (2, False, 46.0, 54.5), (4, True, 42.7, 57.6)],
    "LLaMA 65B, flash": [(1, False, 47.8, 53.6), (2, False, 49.2, 58.6), (4, True, 44.0, 61.9)],
    "GPT-3 96B": [(1, False, 34.0, 37.8), (2, True, 45.8, 55.2)],
    "GPT-3 96B, flash": [(1, False, 52.0, 57.7), (2, True, 51.7, 62.4)]}

# pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, table 5: Llama 3.1 405B on 512
# H100, 8 ranks, full recomputation. Tokens/s/GPU, GiB. Micro-batches are not published; unless told,
# TorchTitan's schedules have as many as ranks (torchtitan/parallelisms/pipelining_utils.py), or as
# stages (the help of its option pipeline_parallel_microbatches), 2 for each rank if interleaved.
TORCHTITAN = {"1f1b": (100, 82.5), "interleaved": (128, 72.7)}
TORCHTITAN_RANKS = 8
TORCHTITAN_MICRO_BATCHES = {"M=8": {"1f1b": 8, "interleaved": 8}, "M=8, 16": {"1f1b": 8, "interleaved": 16}}

# Lamy-Poirier, "Breadth-First Pipeline Parallelism" (arXiv 2211.05953), figure 2: 64 V100 on 8 DGX-1,
# 8 ranks of 8 GPUs that share each layer, no replicas, micro-batches of one sample, a model of 52
# billion parameters. Both orders of loops shorten the bubble; depth first loses to the network.
BREADTH_RANKS, BREADTH_SPLIT, BREADTH_LAYERS, BREADTH_WIDTH, BREADTH_POSITIONS = 8, 8, 64, 8192, 1024
BREADTH_LOOPS, BREADTH_MICRO_BATCHES = (1, 2, 4, 8), (8, 16, 32, 64)
# Operations per second: half of a V100's peak (data sheet) [assumed]. Bytes per second of a GPU, of
# which two share an adapter of 100 Gb/s (DGX-1 white paper); each sends its rank's whole message.
BREADTH_FLOPS, BREADTH_LINK = 125e12 / 2, 6.25e9


def simulate(schedule, ranks, micro_batches, *options):
    """The row of `pipewright schedules` for one schedule."""
    return json.loads(call([find_pipewright(), "schedules", schedule, "--ranks", ranks, "--micro-batches",
                            micro_batches, "--table", "json", *options]))[0]


def pairs_of(published):
    """Whose figure is greater, and whose is less."""
    pairs = [(a, b) for a, b in combinations(published, 2) if published[a] != published[b]]
    return [(a, b) if published[a] > published[b] else (b, a) for a, b in pairs]


def order_of_merit(pairs, predicted, noise=1e-6):
    """Kendall's tau of pairs of a better and a worse one, and the pairs that differ."""
    differ, score = [], 0
    for better, worse in pairs:
        if abs(predicted[better] - predicted[worse]) <= noise * abs(predicted[better]):
            differ.append(f"{better} = {worse}")
        elif predicted[better] > predicted[worse]:
            score += 1
        else:
            score -= 1
            differ.append(f"{better} < {worse}")
    return score / len(pairs), differ


class Report:
    def __init__(self):
        self.lines = []
        print("| configuration | published | predicted | ratio |\n|---|---|---|---|")

    def row(self, what, published, predicted, digits):
        texts = [" / ".join(f"{value:.{count}f}" for value in values)
                 for values, count in ((published, digits), (predicted, digits),
                                       ([b / a for a, b in zip(published, predicted)], 3))]
        print(f"| {what} | " + " | ".join(texts) + " |", flush=True)

    def group(self, what, published, predicted, digits):
        """A row for each key, and the order of all."""
        for key in published:
            self.row(f"{what}: {key}", [published[key]], [predicted[key]], digits)
        self.order(what, pairs_of(published), predicted)

    def order(self, what, pairs, predicted):
        tau, differ = order_of_merit(pairs, predicted)
        verdict = f"predicted {', '.join(differ)}" if differ else "the same order"
        self.lines.append(f"- {what}: tau {tau:.2f}, {verdict}")

    def end(self):
        print("\nOrder of merit, of each group:\n" + "\n".join(self.lines))


def layer_flops():
    """Of a token in a layer: products with weights, attention (causal)."""
    return 2 * (4 * WIDTH ** 2 + 3 * WIDTH * PERCEPTRON), 2 * POSITIONS * WIDTH


def write_stage_times(path, head, flops_per_second):
    """A row for each layer, in milliseconds of a micro-batch of one sample. Backward of attention has
    five products for two of the forward, none for weights."""
    products, attention = layer_flops()
    rows = [[products + attention, products + 2.5 * attention, products] for _ in range(LAYERS)]
    if head:
        rows[-1] = [flops + 2 * WIDTH * VOCABULARY for flops in rows[-1]]
    scale = 1e3 * POSITIONS / flops_per_second
    Path(path).write_text("\n".join(
        ["F,I,W", *(",".join(f"{flops * scale:.6f}" for flops in row) for row in rows)]) + "\n")


def primus_memory(row):
    """GiB of the fullest rank: parameters, and stashes of a size with which 1f1b needs what it needed."""
    products, _ = layer_flops()
    table = WIDTH * VOCABULARY
    layers = LAYERS // 8 * products / 2
    there_and_back = row["schedule"] in ("zb-v", "v-half", "v-min")
    fixed = [layers + table * ((rank == 0) + (rank == (0 if there_and_back else 7))) for rank in range(8)]
    gib = [BYTES_OF_PARAMETER * parameters / 2 ** 30 for parameters in fixed]
    unit = (PRIMUS["1f1b"][1] - BYTES_OF_PARAMETER * (layers + table) / 2 ** 30) / 8
    share = 8 / row["stages"]
    return max(own + unit * share * stashes for own, stashes in zip(gib, row["stashes_of_ranks"]))


def primus(report, micro_batches, folder):
    """The speed of a GPU is that with which 1f1b is as fast as it was."""
    times = os.path.join(folder, "times.csv")
    message = 1e3 * (2 * POSITIONS * WIDTH / LINK + LINK_LATENCY)
    options = ["--stage-times", times, "--latency", message]

    def tokens(schedule):
        row = simulate(schedule, 8, micro_batches, *options)
        return micro_batches * POSITIONS / 8 / (1e-3 * row["step"]), row

    for head, name in ((False, "stages alike"), (True, "head on the last stage")):
        speed = 300e12
        for _ in range(6):
            write_stage_times(times, head, speed)
            speed *= PRIMUS["1f1b"][0] / tokens("1f1b")[0]
        write_stage_times(times, head, speed)
        results = {schedule: tokens(schedule) for schedule in PRIMUS}
        report.group(f"Primus, tokens/s/GPU, {name}", {key: value[0] for key, value in PRIMUS.items()},
                     {key: value[0] for key, value in results.items()}, 0)
    report.group("Primus, GiB", {key: value[1] for key, value in PRIMUS.items()},
                 {key: primus_memory(value[1]) for key, value in results.items()}, 1)


def profiled(model, ranks, micro_batches, schedule, layers=None):
    """A simulation with the paper's times, and the work of a rank, in milliseconds."""
    least = min(number for name, number in TIMES if name == model)
    f, i, w, message = TIMES.get((model, micro_batches), TIMES[model, least])
    options = ["--times", f"F={f},I={i},W={w}", "--latency", message]
    if schedule == "interleaved":
        options += ["--loops", layers]
    return simulate(schedule, ranks, micro_batches, *options), micro_batches * (f + i + w)


def zero_bubble(report):
    """Steps with split backwards follow each other at the span (the paper's section 4)."""
    for model, layers, ranks, samples, micro_batches, published in ZERO_BUBBLE:
        predicted = []
        for schedule in ZERO_BUBBLE_NAMES:
            row, _ = profiled(model, ranks, micro_batches, schedule, layers)
            time = row["span" if schedule.startswith("zb") else "step"]
            predicted.append(1e3 * micro_batches * samples / ranks / time)
        name = f"zero bubble, {model}, M={micro_batches}"
        report.row(f"{name}, samples/s/GPU: {' / '.join(ZERO_BUBBLE_NAMES)}", published, predicted,
                   1 if model == "1.5B" else 2)
        report.order(name, pairs_of(dict(zip(ZERO_BUBBLE_NAMES, published))),
                     dict(zip(ZERO_BUBBLE_NAMES, predicted)))


def bubble_rates(report):
    for model, ranks, micro_batches, schedule, published in BUBBLE_RATES:
        row, work = profiled(model, ranks, micro_batches, schedule)
        report.row(f"bubble rate, {model}, M={micro_batches}: {schedule}", [published],
                   [1 - work / row["span"]], 4)


def bpipe(report):
    """Work is such that a stage which uses all of its GPUs takes 100 us for a sample, so that a rate of
    10,000 samples per second is 100 %."""
    for model, rows in BPIPE.items():
        times = ",".join(f"{samples}={1e4 * samples / stage}us" for samples, _, _, stage in rows)
        text = call([find_pipewright(), "estimate", "--ranks", BPIPE_RANKS, "--batch", BPIPE_BATCH,
                     "--stage-times", times])
        # Micro-batch, stage and step with their units, samples/s.
        rates = {int(samples): float(rate) for samples, rate in re.findall(
            r"^ *(\d+) +[\d.]+ \w+ +[\d.]+ \w+ +([\d.]+) ", text, re.MULTILINE)}
        names = {samples: f"b={samples}{', BPipe' if evicts else ''}" for samples, evicts, _, _ in rows}
        report.group(f"{model}, MFU %", {names[samples]: whole for samples, _, whole, _ in rows},
                     {names[samples]: rates[samples] / 100 for samples, _, _, _ in rows}, 1)


def torchtitan(report):
    """A stage that recomputes all works F again in its backward, B = 3 F; a step has one batch,
    however many micro-batches it has. Shares of 1f1b, of memory without weights."""
    for name, numbers in TORCHTITAN_MICRO_BATCHES.items():
        rows = {schedule: simulate(schedule, TORCHTITAN_RANKS, number, "--times", "F=1,B=3")
                for schedule, number in numbers.items()}
        speeds = {key: numbers[key] / row["step"] for key, row in rows.items()}
        memory = {key: row["activations"] / numbers[key] for key, row in rows.items()}
        for number, what, figures in ((0, "speed", speeds), (1, "memory", memory)):
            first = TORCHTITAN["1f1b"][number]
            report.group(f"TorchTitan, {what} of 1f1b's, {name}",
                         {key: value[number] / first for key, value in TORCHTITAN.items()},
                         {key: value / figures["1f1b"] for key, value in figures.items()}, 2)


def breadth_first(report):
    """Shares of the ideal step. A layer of width w has 24 w^2 operations of a token's forward, and 2 w
    for each position that attention reads, of which it is half of them."""
    width, positions = BREADTH_WIDTH, BREADTH_POSITIONS
    flops = (24 * width ** 2 + 2 * width * positions) * positions * BREADTH_LAYERS / BREADTH_RANKS
    forward = 1e3 * flops / BREADTH_SPLIT / BREADTH_FLOPS
    message = 1e3 * (2 * positions * width / BREADTH_LINK + LINK_LATENCY)
    for micro_batches in BREADTH_MICRO_BATCHES:
        shares = {}
        for order, schedule in (("depth", "interleaved"), ("breadth", "breadth-first")):
            for loops in BREADTH_LOOPS:
                plain = "1f1b" if order == "depth" else "gpipe"
                row = simulate(plain if loops == 1 else schedule, BREADTH_RANKS, micro_batches, "--times",
                               f"F={forward},B={2 * forward}", "--latency", message,
                               *(["--loops", loops] if loops > 1 else []))
                shares[f"{order}-first x {loops}"] = 3 * forward * micro_batches / row["step"]
            values = " / ".join(f"{100 * shares[f'{order}-first x {loops}']:.1f}" for loops in BREADTH_LOOPS)
            print(f"| {order}-first, M={micro_batches}, % of the ideal: "
                  f"{' / '.join(map(str, BREADTH_LOOPS))} loops | order | {values} | |", flush=True)
        names = [[f"{order}-first x {loops}" for loops in BREADTH_LOOPS] for order in ("breadth", "depth")]
        report.order(f"breadth-first, M={micro_batches}, more loops", list(zip(names[0][1:], names[0])), shares)
        report.order(f"depth-first, M={micro_batches}, more loops than one",
                     [(name, names[1][0]) for name in names[1][1:]], shares)
        report.order(f"breadth-first before depth-first, M={micro_batches}",
                     list(zip(names[0][1:], names[1][1:])), shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default="primus,zero-bubble,bubble-rates,bpipe,torchtitan,breadth-first")
    parser.add_argument("--primus-micro-batches", type=int, default=PRIMUS_MICRO_BATCHES)
    a = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        groups = {"primus": lambda: primus(report, a.primus_micro_batches, folder),
                  "zero-bubble": lambda: zero_bubble(report),
                  "bubble-rates": lambda: bubble_rates(report),
                  "bpipe": lambda: bpipe(report), "torchtitan": lambda: torchtitan(report),
                  "breadth-first": lambda: breadth_first(report)}
        for name in a.groups.split(","):
            if name not in groups:
                parser.error(f"--groups: expects some of {', '.join(groups)}, but got '{name}'")
            groups[name]()
    report.end()


if __name__ == "__main__":
    exit_with(main)
