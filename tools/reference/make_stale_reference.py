#!/usr/bin/env python3
"""Writes the numbers that training with stale weights is compared with.

A sequential simulation in PyTorch (float64) of what PipeDream and PipeDream-2BW
say about who reads which weights: no pipeline, no schedule, only the rule. For
each micro-batch the gradient is computed at the weights that the rule names,
and the optimizer applies it to the newest. Recorded are the loss of every
update and, for every parameter, the final value as its norm and 16 random
projections.

    python3 tools/reference/make_stale_reference.py test/Inputs/models test/Inputs/reference

Needs PyTorch, onnx and NumPy; the tests do not.
"""

import json
import os
import sys

import torch
import torch.nn.functional as F

from make_reference import compared, recorded_inputs
from onnx_in_torch import Graph

MODEL, MICRO_BATCH, RATE, MOMENTUM = "lenet.train", 2, 0.02, 0.9
# The cut that `--ranks 4 --balance uniform` makes.
STAGES = [["c1", "c2"], ["f1"], ["f2"], ["f3"]]


class Simulation:
    def __init__(self, path, data, dtype):
        self.graph = Graph(path, dtype)
        self.parameters = self.graph.parameters
        self.optimizer = torch.optim.SGD(self.parameters.values(), RATE, momentum=MOMENTUM)
        self.data, self.dtype = data, dtype
        # By update: all weights after it; the first are the initial ones.
        self.versions = [self.snapshot()]
        self.losses = []

    def snapshot(self):
        return {name: p.detach().clone() for name, p in self.parameters.items()}

    def load(self, values):
        for name, p in self.parameters.items():
            p.data.copy_(values[name])

    def gradient(self, micro_batch, values, share):
        """Adds the gradient at `values` of a share of the loss; the loss."""
        self.load(values)
        count = len(self.data[0]) // MICRO_BATCH
        first = micro_batch % count * MICRO_BATCH
        images, labels = (torch.from_numpy(d[first : first + MICRO_BATCH]) for d in self.data)
        loss = F.cross_entropy(self.graph(images.to(self.dtype))[0], labels.long())
        (loss * share).backward()
        return float(loss.detach()) * share

    def update(self, loss):
        self.load(self.versions[-1])
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.versions.append(self.snapshot())
        self.losses.append(loss)


def pipedream(simulation, window, windows):
    """Micro-batch m of a window reads, in stage s of P, what update
    m-1-(P-1-s) of the window left, or what the window began with."""
    stage_of = {layer: s for s, layers in enumerate(STAGES) for layer in layers}
    for begin in range(0, windows * window, window):
        for m in range(window):
            values = {}
            for name in simulation.parameters:
                lag = len(STAGES) - 1 - stage_of[name.split(".")[0]]
                values[name] = simulation.versions[begin + max(0, m - lag)][name]
            simulation.update(simulation.gradient(begin + m, values, 1.0))


def pipedream_2bw(simulation, per_update, updates):
    """All micro-batches of batch t read W(t-1), with W(-1) = W(0)."""
    for t in range(updates):
        values = simulation.versions[max(0, t - 1)]
        simulation.update(sum(simulation.gradient(t * per_update + i, values, 1 / per_update)
                              for i in range(per_update)))


RULES = {
    "pipedream": (lambda s: pipedream(s, 8, 4), 8),
    "pipedream-2bw": (lambda s: pipedream_2bw(s, 4, 12), 8),
}


def main():
    models, out = sys.argv[1], sys.argv[2]
    path = os.path.join(models, MODEL + ".onnx")
    files, data = recorded_inputs(out, MODEL)
    for schedule, (rule, micro_batches) in RULES.items():
        runs = {}
        for dtype in (torch.float64, torch.float32):
            runs[dtype] = Simulation(path, data, dtype)
            rule(runs[dtype])
        exact, single = runs[torch.float64], runs[torch.float32]
        record = {
            "model": MODEL + ".onnx", "schedule": schedule, "micro_batches": micro_batches,
            "micro_batch_size": MICRO_BATCH, "optimizer": f"sgd,momentum={MOMENTUM}",
            "learning_rate": RATE, "loss": "softmax-cross-entropy", "inputs": files,
            "stages": STAGES, "losses": exact.losses,
            "float32_loss_error": max(
                abs(a - b) / abs(b) for a, b in zip(single.losses, exact.losses)),
            "weights": {},
        }
        for name, value in exact.versions[-1].items():
            weight = compared(value.double().numpy(), single.versions[-1][name].double().numpy())
            moved = value.double() - exact.versions[0][name].double()
            record["weights"][name] = {**weight, "moved": float(moved.norm()) / weight["norm"]}
        with open(os.path.join(out, f"stale.{schedule}.json"), "w") as file:
            json.dump(record, file, indent=1)
        worst = max(w["float32_error"] for w in record["weights"].values())
        least = min(w["moved"] for w in record["weights"].values())
        print(f"{schedule}: losses {exact.losses[0]:.6f} .. {exact.losses[-1]:.6f}, PyTorch float32 "
              f"is off by {record['float32_loss_error']:.1e} (loss), {worst:.1e} (worst weight); "
              f"weights moved by {least:.1e} at least")


if __name__ == "__main__":
    main()
