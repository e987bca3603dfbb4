#!/usr/bin/env python3
"""Writes the numbers that training by LAMB is compared with.

The formula of the paper (You et al. 2020, arXiv 1904.00962, algorithm 2) in
PyTorch's float64: `torch.optim` has no LAMB. Ten steps of a small GPT-2, whose
embedding is tied, with a part of it frozen; weights that begin as zero (biases)
take a step whose ratio is 1. Recorded are the loss of every step and, for every
parameter, the final value as its norm and 16 random projections.

    python3 tools/reference/make_lamb_reference.py test/Inputs/models test/Inputs/reference

Needs PyTorch, onnx and NumPy; the tests do not.
"""

import json
import os
import re
import sys

import numpy as np
import torch

from make_reference import MICRO_BATCHES, PROJECTIONS, run_on, signs
from onnx_in_torch import Graph

MODEL, MICRO_BATCH, RATE, DECAY, FROZEN = "gpt2.train", 2, 0.01, 0.1, "wpe"


class Lamb(torch.optim.Optimizer):
    """Algorithm 2, with the weight itself in place of a function of its norm."""

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(parameters, {"lr": lr})
        self.betas, self.eps, self.decay, self.steps = betas, eps, weight_decay, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        beta1, beta2 = self.betas
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["m"] = torch.zeros_like(weight)
                    state["v"] = torch.zeros_like(weight)
                m, v, gradient = state["m"], state["v"], weight.grad
                m.mul_(beta1).add_((1 - beta1) * gradient)
                v.mul_(beta2).add_((1 - beta2) * gradient ** 2)
                mean = m / (1 - beta1 ** self.steps)
                variance = v / (1 - beta2 ** self.steps)
                update = mean / (variance.sqrt() + self.eps) + self.decay * weight
                lengths = weight.norm(), update.norm()
                ratio = lengths[0] / lengths[1] if lengths[0] > 0 and lengths[1] > 0 else 1.0
                weight.sub_(group["lr"] * ratio * update)


def train(path, data, dtype):
    graph = Graph(path, dtype)
    before = {name: p.detach().clone() for name, p in graph.parameters.items()}
    for name, parameter in graph.parameters.items():
        parameter.requires_grad_(not re.search(FROZEN, name))
    trained = [p for p in graph.parameters.values() if p.requires_grad]
    losses, _ = run_on(graph, data, "tokens512", Lamb(trained, RATE, weight_decay=DECAY),
                       MICRO_BATCH, dtype)
    return losses, before, {name: p.detach() for name, p in graph.parameters.items()}


def main():
    models, out = sys.argv[1], sys.argv[2]
    path = os.path.join(models, MODEL + ".onnx")
    with open(os.path.join(out, MODEL + ".json")) as file:
        files = json.load(file)["inputs"]
    data = [np.load(os.path.join(out, name)) for name in files.values()]
    losses, before, weights = train(path, data, torch.float64)
    losses32, _, weights32 = train(path, data, torch.float32)
    record = {
        "model": MODEL + ".onnx", "micro_batches": MICRO_BATCHES, "micro_batch_size": MICRO_BATCH,
        "optimizer": f"lamb,weight_decay={DECAY}", "learning_rate": RATE, "freeze": FROZEN,
        "loss": "softmax-cross-entropy", "inputs": files, "losses": losses,
        "float32_loss_error": max(abs(a - b) / abs(b) for a, b in zip(losses32, losses)),
        "weights": {}}
    moved = []
    for name, value in weights.items():
        flat = value.numpy().reshape(-1)
        norm = float(np.linalg.norm(flat))
        error = weights32[name].double().numpy().reshape(-1) - flat
        moved.append(float((value - before[name]).norm()) / norm)
        record["weights"][name] = {
            "shape": list(value.shape), "norm": norm,
            "float32_error": float(np.linalg.norm(error)) / norm,
            "projections": [float(flat @ signs(flat.size, k)) for k in range(PROJECTIONS)]}
    with open(os.path.join(out, "gpt2.lamb.json"), "w") as file:
        json.dump(record, file, indent=1)
    worst = max(w["float32_error"] for w in record["weights"].values())
    zeros = sum(float(value.norm()) == 0 for value in before.values())
    print(f"losses {losses[0]:.6f} .. {losses[-1]:.6f}, PyTorch float32 is off by "
          f"{record['float32_loss_error']:.1e} (loss), {worst:.1e} (worst weight); weights moved by "
          f"{100 * min(moved):.2f} % to {100 * max(moved):.0f} % of their norm, {zeros} began as zero, "
          f"{sum(m == 0 for m in moved)} did not move")


if __name__ == "__main__":
    main()
