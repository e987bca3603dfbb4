#!/usr/bin/env python3
"""Writes the numbers that what needs norms of gradients is compared with.

Ten steps of a small GPT-2, whose embedding is tied, with a part of it frozen, in
PyTorch's float64, by

- LAMB: the formula of the paper (You et al. 2020, arXiv 1904.00962, algorithm
  2), as `torch.optim` has none. Weights that begin as zero (biases) take a step
  whose ratio is 1.
- Muon: the formula of `torch.optim.Muon`, which rounds to bfloat16 on its way, in
  float64; all matrices but the embeddings, the others by AdamW. The two agree
  within that rounding, or nothing is written.
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
MATRICES = r"(qkv|proj|fc1|fc2)\.weight"


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


def orthogonal(x, dtype=None):
    """Newton and Schulz's iteration on a matrix of norm 1, as `torch.optim.Muon` has it."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = x.to(dtype or x.dtype)
    x = x.T if x.shape[0] > x.shape[1] else x
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """K. Jordan and others, 2024; `named` are pairs of a name and a weight, [outputs, inputs]."""

    def __init__(self, named, lr, momentum=0.95, weight_decay=0.1, match_rms=False, adamw_factor=1.0,
                 dtype=None):
        named = list(named)
        self.matrices = [w for name, w in named if re.search(MATRICES, name)]
        others = [w for name, w in named if not re.search(MATRICES, name)]
        super().__init__([w for _, w in named], {"lr": lr})
        self.momentum, self.decay, self.match_rms, self.dtype = momentum, weight_decay, match_rms, dtype
        self.buffers = [torch.zeros_like(w) for w in self.matrices]
        self.others = torch.optim.AdamW(others, lr=lr * adamw_factor, betas=(0.9, 0.999), eps=1e-8,
                                        weight_decay=0.01)

    @torch.no_grad()
    def step(self):
        lr = self.param_groups[0]["lr"]
        for weight, buffer in zip(self.matrices, self.buffers):
            rows, columns = weight.shape
            buffer.lerp_(weight.grad, 1 - self.momentum)
            direction = orthogonal(weight.grad.lerp(buffer, self.momentum), self.dtype)
            if rows > columns:
                direction = direction.T
            reach = 0.2 * max(rows, columns) ** 0.5 if self.match_rms else max(1, rows / columns) ** 0.5
            weight.mul_(1 - lr * self.decay).sub_(lr * reach * direction.to(weight.dtype))
        self.others.step()


def check_muon():
    """One step of ours, rounded to bfloat16 in the same places, is one of PyTorch's."""
    generator = torch.Generator().manual_seed(3)
    for shape in (48, 32), (32, 48), (64, 64):
        weight = torch.randn(*shape, generator=generator)
        gradient = torch.randn(*shape, generator=generator)
        results = []
        for make in (lambda w: torch.optim.Muon([w], lr=0.02),
                     lambda w: Muon([("fc1.weight", w), ("x", torch.zeros(1))], 0.02,
                                    dtype=torch.bfloat16)):
            w = weight.clone().requires_grad_()
            w.grad = gradient.clone()
            make(w).step()
            results.append(w.detach() - weight)
        difference = float((results[0] - results[1]).norm() / results[0].norm())
        assert difference < 0.02, (shape, difference)


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
             lambda named, rate: Lamb([w for _, w in named], rate, weight_decay=DECAY)),
    "muon": ("muon,adamw_lr_factor=0.1", 0.02, {},
             lambda named, rate: Muon(named, rate, adamw_factor=0.1)),
    "clip": (f"sgd,momentum={MOMENTUM}", 0.01, {"clip_norm": CLIP},
             lambda named, rate: ClippedSgd([w for _, w in named], rate))}


def train(path, data, make_optimizer, rate, dtype):
    graph = Graph(path, dtype)
    before = {name: p.detach().clone() for name, p in graph.parameters.items()}
    for name, parameter in graph.parameters.items():
        parameter.requires_grad_(not re.search(FROZEN, name))
    optimizer = make_optimizer([pair for pair in graph.parameters.items()
                                if pair[1].requires_grad], rate)
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
    check_muon()
    for case in CASES:
        write(case, path, files, data, out)


if __name__ == "__main__":
    main()
