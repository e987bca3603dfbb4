"""All ways to use workers, each planned by itself: what a search must not be slower than."""

import itertools
import json
import subprocess

from pipetools.running import find_pipewright

# Of what may be recomputed, modes that differ much.
MODES = ("none", "pointwise", "every:1", "every:2", "full", "auto")


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


def by_brute_force(common, workers, batch, modes=MODES):
    """How many ways there are, and (seconds of a step, options) of those that fit, the fastest
    first. `common` are the model and options that all ways share."""
    ways = list(every_way(workers, batch, modes))
    plans = [(plan(*common, *way, "--schedule", "auto"), way) for way in ways]
    fitting = [(one["predicted_step_seconds"], way) for one, way in plans if one]
    return len(ways), sorted(fitting, key=lambda pair: pair[0])


def is_slower(found, least):
    """Whether a search that found so many seconds, or nothing, is beaten; steps that differ by less
    are sums of the same times in another order."""
    return least is not None and (found is None or least < found * (1 - 1e-9))
