#!/usr/bin/python3
"""Published measurements of pipelines beside what the simulator says of the same configurations.

    tools/bench/published.py [--groups primus,zero-bubble,bubble-rates,bpipe,torchtitan,
                                       breadth-first] [--primus-micro-batches M]

What Megatron-LM and what was made of it have run is simulated as those do it: ranks wait for their
messages. In Pipewright's programs, and in the paper's own of breadth-first pipelines, ranks go on.
Nothing is compiled or run: `pipewright schedules` simulates each schedule from times of one stage,
published ones where there are any, else those of a stage's operations; `pipewright estimate` takes
the utilization of a stage. Prints a Markdown table, of which `ratio` is predicted / published, and
for each group whether the predicted order of merit is the published one; published figures of one
run that differ by less than 1 % have none. Of breadth-first pipelines only the order is published
here: the paper's figure was not read off.
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
# Figures nearer than this are taken for equal.
NOISE = 0.01
# Bytes of a layer's activations for each position and unit of width, without attention's scores, which
# have 5 for each pair of positions and each head (Korthikanti et al., arXiv 2205.05198, section 4).
BYTES_OF_UNIT = 34
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
# Width and heads of its models; of a layer's activations W needs 32 bytes for each position and unit
# of width (section 3 and table of models).
ZERO_BUBBLE_POSITIONS, WEIGHTS_BYTES_OF_UNIT = 1024, 32
ZERO_BUBBLE_SHAPES = {"1.5B": (2304, 24), "6.2B": (4096, 32), "14.6B": (5120, 40), "28.3B": (6144, 48)}
BUBBLE_RATES = [
    ("6.2B", 8, 24, "1f1b", .2347), ("6.2B", 8, 24, "zb-h1", .1323), ("6.2B", 8, 24, "zb-h2", .0698),
    ("6.2B", 8, 24, "zb-2p", .0029), ("1.5B", 8, 24, "zb-1p", .1585), ("1.5B", 8, 24, "zb-2p", .0433),
    ("1.5B", 8, 32, "zb-1p", .1242), ("1.5B", 8, 32, "zb-2p", .0039), ("1.5B", 8, 64, "zb-1p", .0674),
    ("1.5B", 8, 64, "zb-2p", .0026), ("14.6B", 16, 48, "zb-1p", .1397), ("14.6B", 16, 48, "zb-2p", .0066),
    ("28.3B", 32, 96, "zb-1p", .1421), ("28.3B", 32, 96, "zb-2p", .0038)]

# "Re-evaluating the Memory-balanced Pipeline Parallelism: BPipe" (arXiv 2401.02088), table of MFU:
# 32 A100, 8 ranks of 4, 128 samples of 2048 positions. Samples of a micro-batch, whether BPipe evicts;
# % of the whole model, % of one stage alone.
BPIPE_RANKS, BPIPE_SPLIT, BPIPE_BATCH, BPIPE_POSITIONS = 8, 4, 128, 2048
# Layers, width, parameters of a model.
BPIPE_SHAPES = {"LLaMA 65B": (80, 8192, 65e9), "GPT-3 96B": (80, 9984, 96e9)}
# A100 (data sheet): FLOP/s in 16 bits; bytes per second of NVLink, in each direction.
A100_FLOPS, A100_LINK = 312e12, 300e9
BPIPE = {
    "LLaMA 65B": [(1, False, 45.3, 51.1), (2, False, 46.0, 54.5), (4, True, 42.7, 57.6)],
    "LLaMA 65B, flash": [(1, False, 47.8, 53.6), (2, False, 49.2, 58.6), (4, True, 44.0, 61.9)],
    "GPT-3 96B": [(1, False, 34.0, 37.8), (2, True, 45.8, 55.2)],
    "GPT-3 96B, flash": [(1, False, 52.0, 57.7), (2, True, 51.7, 62.4)]}

# pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, table 5: Llama 3.1 405B on 512
# H100, 8 ranks of 8 GPUs that share each layer, 8 replicas with FSDP, 32 samples of 8192 positions
# each, full recomputation. Tokens/s/GPU, GiB. Micro-batches are not published; unless told,
# TorchTitan's schedules have as many as ranks (torchtitan/parallelisms/pipelining_utils.py).
TORCHTITAN = {"1f1b": (100, 82.5), "interleaved": (128, 72.7)}
TORCHTITAN_RANKS = TORCHTITAN_SPLIT = TORCHTITAN_REPLICAS = TORCHTITAN_MICRO_BATCHES = 8
TORCHTITAN_SAMPLES, TORCHTITAN_POSITIONS = 32, 8192
# Llama 3.1 405B (arXiv 2407.21783, table 3): layers, width, perceptron, heads, heads of keys.
LLAMA_LAYERS, LLAMA_WIDTH, LLAMA_PERCEPTRON, LLAMA_HEADS, LLAMA_KEYS = 126, 16384, 53248, 128, 8
# A parameter of a replica's share: weight, gradient and two of Adam, f32. One of a stage whose
# weights are gathered, in bf16, and of one whose gradients are not summed yet, in f32: in a pipeline
# FSDP has weights gathered all the time (reshard_after_forward of pipelined models in TorchTitan), and
# sums a stage's gradients behind its last backward (torch.distributed.pipelining.stage).
SHARE_BYTES, GATHERED_BYTES, GRADIENT_BYTES = 16, 2, 4

# Lamy-Poirier, "Breadth-First Pipeline Parallelism" (arXiv 2211.05953), figure 2: 64 V100 on 8 DGX-1,
# 8 ranks of 8 GPUs that share each layer, no replicas, micro-batches of one sample, a model of 52
# billion parameters. Both orders of loops shorten the bubble; depth first loses to the network.
BREADTH_RANKS, BREADTH_SPLIT, BREADTH_LAYERS, BREADTH_WIDTH, BREADTH_POSITIONS = 8, 8, 64, 8192, 1024
BREADTH_LOOPS, BREADTH_MICRO_BATCHES = (1, 2, 4, 8), (8, 16, 32, 64)
# Operations per second: half of a V100's peak (data sheet) [assumed]. Bytes per second of a GPU, of
# which two share an adapter of 100 Gb/s (DGX-1 white paper); each sends its part of its rank's message
# (Megatron-LM, scatter_gather_tensors_in_pipeline, the default).
BREADTH_FLOPS, BREADTH_LINK = 125e12 / 2, 6.25e9


def simulate(schedule, ranks, micro_batches, *options):
    """The row of `pipewright schedules` for one schedule."""
    return json.loads(call([find_pipewright(), "schedules", schedule, "--ranks", ranks, "--micro-batches",
                            micro_batches, "--table", "json", *options]))[0]


def waiting(times, message, loops=1):
    """Options for ranks that wait for each message, as Megatron-LM's (p2p_communication.py), unless
    told to overlap them: what sends takes its time, forwards and what has the input's gradient.
    `times` are of a rank's share, so it is in them for each of its stages."""
    sends = {kind: time + loops * message * (kind != "W") for kind, time in times.items()}
    return ["--times", ",".join(f"{kind}={time}" for kind, time in sends.items())]


def pairs_of(published):
    """Whose figure is greater, and whose is less, by more than noise."""
    pairs = [(a, b) for a, b in combinations(published, 2)
             if abs(published[a] - published[b]) > NOISE * max(published[a], published[b])]
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
        if not pairs:
            self.lines.append(f"- {what}: published figures are within {NOISE:.0%}")
            return
        tau, differ = order_of_merit(pairs, predicted)
        verdict = f"predicted {', '.join(differ)}" if differ else "the same order"
        self.lines.append(f"- {what}: tau {tau:.2f}, {verdict}")

    def end(self):
        print("\nOrder of merit, of each group:\n" + "\n".join(self.lines))


def layer_flops():
    """Of a token in a layer: products with weights, attention (causal)."""
    return 2 * (4 * WIDTH ** 2 + 3 * WIDTH * PERCEPTRON), 2 * POSITIONS * WIDTH


def write_stage_times(path, head, flops_per_second, stages, message):
    """A row for each layer, in milliseconds of a micro-batch of one sample. Backward of attention has
    five products for two of the forward, none for weights. Ranks wait for messages: each stage's share
    of layers has one more in F and I."""
    products, attention = layer_flops()
    rows = [[products + attention, products + 2.5 * attention, products] for _ in range(LAYERS)]
    if head:
        rows[-1] = [flops + 2 * WIDTH * VOCABULARY for flops in rows[-1]]
    scale, sends = 1e3 * POSITIONS / flops_per_second, message * stages / LAYERS
    Path(path).write_text("\n".join(
        ["F,I,W", *(",".join(f"{flops * scale + extra:.6f}" for flops, extra in zip(row, (sends, sends, 0)))
                    for row in rows)]) + "\n")


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

    def tokens(schedule, head, speed):
        write_stage_times(times, head, speed, 8 if schedule in ("1f1b", "zb-h1") else 16, message)
        row = simulate(schedule, 8, micro_batches, "--stage-times", times)
        return micro_batches * POSITIONS / 8 / (1e-3 * row["step"]), row

    for head, name in ((False, "stages alike"), (True, "head on the last stage")):
        speed = 300e12
        for _ in range(6):
            speed *= PRIMUS["1f1b"][0] / tokens("1f1b", head, speed)[0]
        results = {schedule: tokens(schedule, head, speed) for schedule in PRIMUS}
        report.group(f"Primus, tokens/s/GPU, {name}", {key: value[0] for key, value in PRIMUS.items()},
                     {key: value[0] for key, value in results.items()}, 0)
    report.group("Primus, GiB", {key: value[1] for key, value in PRIMUS.items()},
                 {key: primus_memory(value[1]) for key, value in results.items()}, 1)


def profiled(model, micro_batches):
    """The paper's times of F, I and W, by name, and of a message, in milliseconds."""
    least = min(number for name, number in TIMES if name == model)
    *times, message = TIMES.get((model, micro_batches), TIMES[model, least])
    return dict(zip("FIW", times)), message


def planned(schedule, model):
    """The word and options for a schedule of the paper: zb-1p and zb-2p have the bytes of so many
    stashes, and the shortest span of what was tried."""
    if schedule not in ("zb-1p", "zb-2p"):
        return schedule, []
    width, heads = ZERO_BUBBLE_SHAPES[model]
    tokens = ZERO_BUBBLE_POSITIONS
    stash = BYTES_OF_UNIT * tokens * width + 5 * tokens ** 2 * heads
    return schedule + ":span", ["--stash", f"{stash}B", "--weight-stash",
                                f"{WEIGHTS_BYTES_OF_UNIT * tokens * width}B"]


def zero_bubble(report):
    """Steps with split backwards follow each other at the span (the paper's section 4)."""
    for model, layers, ranks, samples, micro_batches, published in ZERO_BUBBLE:
        predicted = []
        for schedule in ZERO_BUBBLE_NAMES:
            options = waiting(*profiled(model, micro_batches), layers if schedule == "interleaved" else 1)
            if schedule == "interleaved":
                options += ["--loops", layers]
            word, more = planned(schedule, model)
            row = simulate(word, ranks, micro_batches, *options, *more)
            time = row["span" if schedule.startswith("zb") else "step"]
            predicted.append(1e3 * micro_batches * samples / ranks / time)
        name = f"zero bubble, {model}, M={micro_batches}"
        report.row(f"{name}, samples/s/GPU: {' / '.join(ZERO_BUBBLE_NAMES)}", published, predicted,
                   1 if model == "1.5B" else 2)
        report.order(name, pairs_of(dict(zip(ZERO_BUBBLE_NAMES, published))),
                     dict(zip(ZERO_BUBBLE_NAMES, predicted)))


def bubble_rates(report):
    """The paper's own simulation: messages take no time of ranks."""
    for model, ranks, micro_batches, schedule, published in BUBBLE_RATES:
        times, message = profiled(model, micro_batches)
        word, more = planned(schedule, model)
        row = simulate(word, ranks, micro_batches, *waiting(times, 0), "--latency", message, *more)
        report.row(f"bubble rate, {model}, M={micro_batches}: {schedule}", [published],
                   [1 - micro_batches * sum(times.values()) / row["span"]], 4)


def bpipe(report):
    """A stash leaves and another comes back for each micro-batch of a rank that evicts, at the same
    time, over links that the GPUs which share its layers need as well: work waits for it. Work is such
    that a stage which uses all of its GPUs takes 100 us for a sample, so that a rate of 10,000 samples
    per second is 100 %."""
    for model, rows in BPIPE.items():
        layers, width, parameters = BPIPE_SHAPES[model.split(",")[0]]
        # Of a sample: seconds of a stage that uses all of its GPUs, of a GPU's part of the stash.
        full = 6 * parameters / BPIPE_RANKS * BPIPE_POSITIONS / (BPIPE_SPLIT * A100_FLOPS)
        stash = BYTES_OF_UNIT * BPIPE_POSITIONS * width * layers / BPIPE_RANKS / BPIPE_SPLIT
        move = 100 * stash / A100_LINK / full
        times = ",".join(f"{samples}={samples * (1e4 / stage + evicts * move)}us"
                         for samples, evicts, _, stage in rows)
        text = call([find_pipewright(), "estimate", "--ranks", BPIPE_RANKS, "--batch", BPIPE_BATCH,
                     "--stage-times", times])
        # Micro-batch, stage and step with their units, samples/s.
        rates = {int(samples): float(rate) for samples, rate in re.findall(
            r"^ *(\d+) +[\d.]+ \w+ +[\d.]+ \w+ +([\d.]+) ", text, re.MULTILINE)}
        names = {samples: f"b={samples}{', BPipe' if evicts else ''}" for samples, evicts, _, _ in rows}
        report.group(f"{model}, MFU %", {names[samples]: whole for samples, _, whole, _ in rows},
                     {names[samples]: rates[samples] / 100 for samples, _, _, _ in rows}, 1)


def torchtitan_memory(order, stages):
    """GiB of a GPU of the fullest rank, of weights and gradients of its layers and the inputs that they
    keep; `order` has the tasks of each rank."""
    keys = LLAMA_WIDTH * LLAMA_KEYS // LLAMA_HEADS
    layer = 2 * LLAMA_WIDTH * (LLAMA_WIDTH + keys) + 3 * LLAMA_WIDTH * LLAMA_PERCEPTRON
    parameters = layer * LLAMA_LAYERS / stages / TORCHTITAN_SPLIT
    samples = TORCHTITAN_SAMPLES / TORCHTITAN_MICRO_BATCHES
    stash = 2 * samples * TORCHTITAN_POSITIONS * LLAMA_WIDTH * LLAMA_LAYERS / stages / TORCHTITAN_SPLIT

    def most(tasks):
        tasks = [(task[0], *task[1:].split(".")) for task in tasks if task[0] in "FB"]
        last = {stage: at for at, (kind, stage, _) in enumerate(tasks) if kind == "B"}
        kept, unsummed, most = 0, set(), 0
        for at, (kind, stage, _) in enumerate(tasks):
            kept += kind == "F"
            if kind == "B":
                unsummed.add(stage)
            most = max(most, kept * stash + len(unsummed) * GRADIENT_BYTES * parameters)
            kept -= kind == "B"
            unsummed -= {stage} if last[stage] == at else set()
        return most + len(last) * parameters * (SHARE_BYTES / TORCHTITAN_REPLICAS + GATHERED_BYTES)

    return max(most(tasks) for tasks in order) / 2 ** 30


def torchtitan(report, folder):
    """A stage that recomputes all works F again in its backward, B = 3 F."""
    path = Path(folder, "order.json")
    rows = {schedule: simulate(schedule, TORCHTITAN_RANKS, TORCHTITAN_MICRO_BATCHES, "--times", "F=1,B=3")
            for schedule in TORCHTITAN}
    report.group("TorchTitan, speed of 1f1b's",
                 {key: value[0] / TORCHTITAN["1f1b"][0] for key, value in TORCHTITAN.items()},
                 {key: rows["1f1b"]["step"] / row["step"] for key, row in rows.items()}, 2)
    memory = {}
    for schedule, row in rows.items():
        call([find_pipewright(), "schedules", schedule, "--ranks", TORCHTITAN_RANKS, "--micro-batches",
              TORCHTITAN_MICRO_BATCHES, "--write", path])
        memory[schedule] = torchtitan_memory(json.loads(path.read_text())["order"], row["stages"])
    # Less is better.
    report.group("TorchTitan, GiB", {key: value[1] for key, value in TORCHTITAN.items()}, memory, 1)


def breadth_first(report):
    """Shares of the ideal step. A layer of width w has 24 w^2 operations of a token's forward, and 2 w
    for each position that attention reads, of which it is half of them. Depth-first is Megatron-LM's."""
    width, positions = BREADTH_WIDTH, BREADTH_POSITIONS
    flops = (24 * width ** 2 + 2 * width * positions) * positions * BREADTH_LAYERS / BREADTH_RANKS
    forward = 1e3 * flops / BREADTH_SPLIT / BREADTH_FLOPS
    message = 1e3 * (2 * positions * width / BREADTH_SPLIT / BREADTH_LINK + LINK_LATENCY)
    for micro_batches in BREADTH_MICRO_BATCHES:
        shares = {}
        for order, schedule in (("depth", "interleaved"), ("breadth", "breadth-first")):
            for loops in BREADTH_LOOPS:
                plain = "1f1b" if order == "depth" else "gpipe"
                times = {"F": forward, "B": 2 * forward}
                options = (waiting(times, message, loops) if order == "depth" else
                           [*waiting(times, 0), "--latency", message])
                row = simulate(plain if loops == 1 else schedule, BREADTH_RANKS, micro_batches, *options,
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
                  "bpipe": lambda: bpipe(report), "torchtitan": lambda: torchtitan(report, folder),
                  "breadth-first": lambda: breadth_first(report)}
        for name in a.groups.split(","):
            if name not in groups:
                parser.error(f"--groups: expects some of {', '.join(groups)}, but got '{name}'")
            groups[name]()
    report.end()


if __name__ == "__main__":
    exit_with(main)
