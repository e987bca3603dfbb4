#!/usr/bin/env python3
"""Writes the numbers that what needs norms of gradients is compared with.

Ten steps of a small GPT-2, whose embedding is tied, with a part of it frozen, in
PyTorch's float64, by

- LAMB: the formula of the paper (You et al. 2020, arXiv 1904.00962, algorithm
  2), as `torch.optim` has none. Weights that begin as zero (biases) take a step
  whose ratio is 1.
- SGD with momentum, behind `torch.nn.utils.clip_grad_norm_`, which scales the
  gradients of some steps and leaves those of others.

Recorded are the loss of every step, the norms of the gradients before they are
clipped, and, for every parameter, the final value as its norm and 16 random
projections.

    python3 tools/reference/make_optimizer_reference.py test/Inputs/models test/Inputs/reference

Needs PyTorch, onnx and NumPy; the tests do not.
"""

import json
import os
import re
import sys

import torch

from make_reference import MICRO_BATCHES, compared, recorded_inputs, run_on
from onnx_in_torch import Graph

MODEL, MICRO_BATCH, FROZEN = "gpt2.train", 2, "wpe"
DECAY, MOMENTUM, CLIP = 0.1, 0.9, 8.1


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


class ClippedSgd(torch.optim.SGD):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr, momentum=MOMENTUM)
        self.norms = []

    def step(self):
        weights = self.param_groups[0]["params"]
        self.norms.append(float(torch.nn.utils.clip_grad_norm_(weights, CLIP)))
        super().step()


CASES = {
    "lamb": (f"lamb,weight_decay={DECAY}", 0.01, {},
             lambda weights, rate: Lamb(weights, rate, weight_decay=DECAY)),
    "clip": (f"sgd,momentum={MOMENTUM}", 0.01, {"clip_norm": CLIP}, ClippedSgd)}


def train(path, data, make_optimizer, rate, dtype):
    graph = Graph(path, dtype)
    before = {name: p.detach().clone() for name, p in graph.parameters.items()}
    for name, parameter in graph.parameters.items():
        parameter.requires_grad_(not re.search(FROZEN, name))
    optimizer = make_optimizer([p for p in graph.parameters.values() if p.requires_grad], rate)
    losses, _ = run_on(graph, data, "tokens512", optimizer, MICRO_BATCH, dtype)
    weights = {name: p.detach() for name, p in graph.parameters.items()}
    return losses, before, weights, getattr(optimizer, "norms", None)


def write(case, path, files, data, out):
    optimizer, rate, options, make_optimizer = CASES[case]
    losses, before, weights, norms = train(path, data, make_optimizer, rate, torch.float64)
    losses32, _, weights32, _ = train(path, data, make_optimizer, rate, torch.float32)
    record = {
        "model": MODEL + ".onnx", "micro_batches": MICRO_BATCHES, "micro_batch_size": MICRO_BATCH,
        "optimizer": optimizer, "learning_rate": rate, "freeze": FROZEN,
        "loss": "softmax-cross-entropy", **options, "inputs": files, "losses": losses,
        "float32_loss_error": max(abs(a - b) / abs(b) for a, b in zip(losses32, losses)),
        **({"gradient_norms": norms} if norms else {}),
        "weights": {}}
    moved = []
    for name, value in weights.items():
        record["weights"][name] = compared(value.numpy(), weights32[name].double().numpy())
        moved.append(float((value - before[name]).norm()) / record["weights"][name]["norm"])
    with open(os.path.join(out, f"gpt2.{case}.json"), "w") as file:
        json.dump(record, file, indent=1)
    worst = max(w["float32_error"] for w in record["weights"].values())
    zeros = sum(float(value.norm()) == 0 for value in before.values())
    print(f"{case}: losses {losses[0]:.6f} .. {losses[-1]:.6f}, PyTorch float32 is off by "
          f"{record['float32_loss_error']:.1e} (loss), {worst:.1e} (worst weight); weights moved by "
          f"{100 * min(moved):.2f} % to {100 * max(moved):.0f} % of their norm, {zeros} began as zero, "
          f"{sum(m == 0 for m in moved)} did not move")
    if norms:
        print("norms", " ".join(f"{norm:.3f}" for norm in norms))


def main():
    models, out = sys.argv[1], sys.argv[2]
    path = os.path.join(models, MODEL + ".onnx")
    files, data = recorded_inputs(out, MODEL)
    for case in CASES:
        write(case, path, files, data, out)


if __name__ == "__main__":
    main()
