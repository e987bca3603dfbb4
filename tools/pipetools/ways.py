"""All ways to use workers, each planned by itself: what a search must not be slower than."""

import itertools
import json
import subprocess

from pipetools.running import find_pipewright

# Of what may be recomputed, modes that differ much.
MODES = ("none", "pointwise", "every:1", "every:2", "full", "auto")
# What may be asked for by name.
DRAWN_MODES = ("none", "none", "pointwise", "selective", "keep:80", "keep:60", "keep:30", "every:1",
               "every:2", "full", "window:1", "window:2", "except-last", "auto")
BALANCES = ("flops", "step", "step", "uniform", "parameters", "memory", "deepspeed-parameters",
            "torchgpipe-size")


def plan(*words):
    """The JSON of a plan; None where there is none."""
    done = subprocess.run([find_pipewright(), "plan", *map(str, words), "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          timeout=1800)
    return json.loads(done.stdout) if done.returncode == 0 else None


def every_way(workers, batch, modes):
    """Options of all numbers of ranks, replicas and micro-batches that make so many workers and
    samples, of all levels of ZeRO and of these modes of recomputation."""
    for ranks, zero, mode in itertools.product(range(1, workers + 1), range(4), modes):
        replicas = workers // ranks
        if workers % ranks or (zero > 0 and replicas == 1):
            continue
        for size in range(1, batch + 1):
            if batch % (replicas * size) == 0:
                yield ["--ranks", ranks, "--data-parallel", replicas, "--zero", zero,
                       "--remat", mode, "--micro-batch-size", size,
                       "--micro-batches", batch // (replicas * size)]


def choose_schedules(ways):
    """The same, each with the fastest schedule."""
    return [[*way, "--schedule", "auto"] for way in ways]


def draw_ways(draw, workers, batch, count):
    """Options of so many ways whose schedule, stages, cut and recomputation are drawn by name. Some
    are not possible."""
    listed = subprocess.run([find_pipewright(), "schedules", "--json"], check=True,
                            stdout=subprocess.PIPE, timeout=60)
    schedules = [one["name"] for one in json.loads(listed.stdout)
                 if one["trains"] and not one["stale_weights"]]
    shapes = list(every_way(workers, batch, ["none"]))
    for _ in range(count):
        way = list(draw.choice(shapes))
        way[way.index("--remat") + 1] = draw.choice(DRAWN_MODES)
        way += ["--schedule", draw.choice(schedules), "--balance", draw.choice(BALANCES)]
        if loops := draw.choice([None, 1, 2, 3, 4]):
            way += ["--loops", loops]
        if draw.random() < 0.2:
            way.append("--early-recompute")
        yield way


def by_brute_force(common, ways):
    """Seconds of a step and options of the ways that fit, the fastest first. `common` are the model
    and options that all ways share."""
    plans = [(plan(*common, *way), way) for way in ways]
    return sorted([(one["predicted_step_seconds"], way) for one, way in plans if one],
                  key=lambda pair: pair[0])


def is_slower(found, least):
    """Whether a search that found so many seconds, or nothing, is beaten; steps that differ by less
    are sums of the same times in another order."""
    return least is not None and (found is None or least < found * (1 - 1e-9))
