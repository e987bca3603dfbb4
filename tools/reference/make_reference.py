#!/usr/bin/env python3
"""Writes the numbers that Pipewright's training is compared with.

For each model below: the inputs of one batch (NumPy files), the losses of ten
steps and, for every parameter, the gradient of step 1 as its norm and 16
random projections, all computed by PyTorch in float64. Beside them stands how
far PyTorch's own float32 is from that, which is what the tolerances rest on.

    /usr/bin/python3 tools/reference/make_reference.py test/Inputs/models test/Inputs/reference

Needs Debian's python3-torch, python3-onnx and python3-numpy; the tests do not.
"""

import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from onnx_in_torch import Graph

MICRO_BATCHES, MICRO_BATCH, STEPS, PROJECTIONS = 4, 2, 10, 16

# model file: (inputs by kind, loss, learning rate)
MODELS = {
    "mlp.train": (["image1x28x28"], "class10", 0.05, 4),
    "lenet.train": (["image1x28x28"], "class10", 0.05, 4),
    "vgg19.train": (["image3x32x32"], "class10", 0.05, 2),
    "vgg19_dynamic.train": (["image3x32x32"], "class10", 0.05, 2),
    # Batch normalization over few samples is ill-conditioned: with 2 images of
    # 64x64 PyTorch's own float32 gradients are off by 5 %, hence 16. Bytes,
    # because the first normalization takes their scale away.
    "resnet50.train": (["bytes3x64x64"], "class10", 0.01, 16),
    "resnet50.eval": (["image3x64x64"], "class10", 0.001, 2),
    "gpt2.train": (["tokens512"], "tokens512", 0.05, 2),
    "gpt2.eval": (["tokens512"], "tokens512", 0.05, 2),
    "gpt2_dynamic.train": (["tokens512"], "tokens512", 0.05, 2),
    "gpt2_loss.train": (["tokens512", "tokens512"], "", 0.05, 2),
    "gpt2_opset13.train": (["tokens512"], "tokens512", 0.05, 2),
    "bert.train": (["tokens512", "types", "mask"], "tokens512", 0.05, 2),
    "bert.eval": (["tokens512", "types", "mask"], "tokens512", 0.05, 2),
    "resnet18.train": (["bytes3x32x32"], "class10", 0.01, 16),
}
# The data's seed is the place in this table: new models go to its end. A model
# with ReLUs may need another one: where a value before a ReLU is within
# rounding of 0, one flipped element alone moves a gradient by 1e-3.


class Lion(torch.optim.Optimizer):
    """The formula of the paper (Chen et al. 2023, arXiv 2302.06675, program 1):
    `torch.optim` has no Lion."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, {"lr": lr})
        self.betas, self.decay = betas, weight_decay

    @torch.no_grad()
    def step(self):
        beta1, beta2 = self.betas
        for group in self.param_groups:
            for weight in group["params"]:
                momentum = self.state[weight].setdefault("m", torch.zeros_like(weight))
                direction = torch.sign(torch.lerp(weight.grad, momentum, beta1))
                weight.sub_(group["lr"] * (direction + self.decay * weight))
                momentum.lerp_(weight.grad, 1 - beta2)


OPTIMIZERS = {
    "sgd,momentum=0": lambda p, lr: torch.optim.SGD(p, lr),
    "sgd,momentum=0.9": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9),
    "sgd,momentum=0.9,nesterov=true,weight_decay=0.01": lambda p, lr: torch.optim.SGD(
        p, lr, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p, lr: torch.optim.Adam(p, lr),
    "adamw": lambda p, lr: torch.optim.AdamW(p, lr),
    "rmsprop": lambda p, lr: torch.optim.RMSprop(p, lr),
    "rmsprop,momentum=0.9": lambda p, lr: torch.optim.RMSprop(p, lr, momentum=0.9),
    "lion": Lion,
    "lion,weight_decay=1": lambda p, lr: Lion(p, lr, weight_decay=1),
}


def make_data(kind, samples, generator):
    """Inputs by kind; small integer types keep the files small."""
    if kind.startswith("image"):
        shape = [int(d) for d in kind[5:].split("x")]
        return generator.standard_normal([samples] + shape).astype(np.float32)
    if kind.startswith("bytes"):
        shape = [int(d) for d in kind[5:].split("x")]
        return generator.integers(0, 256, [samples] + shape).astype(np.uint8)
    if kind.startswith("tokens"):
        return generator.integers(0, int(kind[6:]), [samples, 32]).astype(np.int32)
    if kind == "types":
        return generator.integers(0, 2, [samples, 32]).astype(np.uint8)
    if kind == "mask":
        lengths = generator.integers(8, 33, [samples, 1])
        return (np.arange(32)[None] < lengths).astype(np.uint8)
    if kind.startswith("class"):
        return generator.integers(0, int(kind[5:]), [samples]).astype(np.int32)
    raise ValueError(kind)


def write_gradients(out, name, model, inputs, rate, exact, rounded):
    """Writes NAME.json: losses and gradients of a run in float64, each a pair of a list and a
    dictionary of flat arrays by weight, with how far a run in float32 is from them. `inputs` maps
    names of inputs to arrays, which become NAME.0.npy and so on."""
    files = {}
    for i, (key, values) in enumerate(inputs.items()):
        files[key] = f"{name}.{i}.npy"
        np.save(os.path.join(out, files[key]), values)
    (losses, gradients), (single, singles) = exact, rounded
    record = {
        "model": model, "optimizer": "sgd", "learning_rate": rate, "inputs": files, "losses": losses,
        "float32_loss_error": max(abs(a - b) / b for a, b in zip(single, losses)),
        "gradients": {
            key: {
                "shape": list(shape), "norm": float(np.linalg.norm(g)),
                "float32_error": float(np.linalg.norm(singles[key][1] - g) / np.linalg.norm(g)),
                "projections": [float(g @ signs(g.size, k)) for k in range(PROJECTIONS)]}
            for key, (shape, g) in gradients.items()},
    }
    with open(os.path.join(out, f"{name}.json"), "w") as file:
        json.dump(record, file, indent=1)
    print(f"losses {losses}")


def write_training(out, name, model, inputs, weights, rate, steps, loss_of):
    """Trains `weights`, arrays by name, by SGD, and writes it as write_gradients does. `loss_of` gets
    the parameters by name, then the inputs, floats in the type of the run."""

    def run(dtype):
        parameters = {n: torch.tensor(w.astype(np.float32)).to(dtype).requires_grad_() for n, w in weights.items()}
        tensors = [torch.tensor(values) for values in inputs.values()]
        tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
        step = torch.optim.SGD(parameters.values(), rate)
        losses, gradients = [], {}
        for number in range(steps):
            step.zero_grad()
            loss = loss_of(parameters, *tensors)
            loss.backward()
            if number == 0:
                gradients = {n: (p.shape, p.grad.double().numpy().reshape(-1).copy()) for n, p in parameters.items()}
            step.step()
            losses.append(float(loss.detach()))
        return losses, gradients

    write_gradients(out, name, model, inputs, rate, run(torch.float64), run(torch.float32))


def signs(count, projection):
    """+1 and -1 by splitmix64 of the index: the same in any language."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64(projection << 40)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return np.where(z & np.uint64(1), 1.0, -1.0)


def compared(exact, single):
    """What is kept of an array to compare others with, and how far float32 is off."""
    flat = exact.reshape(-1)
    norm = float(np.linalg.norm(flat))
    error = float(np.linalg.norm(single.reshape(-1) - flat))
    return {
        "shape": list(exact.shape), "norm": norm, "float32_error": error / norm if norm else 0.0,
        "projections": [float(flat @ signs(flat.size, k)) for k in range(PROJECTIONS)]}


def recorded_inputs(out, model):
    """The files of the inputs that a model's record names, and what is in them."""
    with open(os.path.join(out, model + ".json")) as file:
        files = json.load(file)["inputs"]
    return files, [np.load(os.path.join(out, name)) for name in files.values()]


def run(path, data, loss_kind, optimizer, rate, micro_batch, dtype):
    """Losses of the steps, gradients of step 1."""
    graph = Graph(path, dtype)
    parameters = list(graph.parameters.values())
    return run_on(graph, data, loss_kind, optimizer(parameters, rate), micro_batch, dtype)


def run_on(graph, data, loss_kind, step, micro_batch, dtype):
    """The same with a model and an optimizer that are there already."""
    losses, gradients = [], {}
    for number in range(STEPS):
        step.zero_grad()
        total = 0.0
        for m in range(MICRO_BATCHES):
            part = [torch.from_numpy(d[m * micro_batch : (m + 1) * micro_batch]) for d in data]
            part = [p.to(dtype) if p.dim() == 4 else p.long() for p in part]
            if loss_kind:
                labels = part.pop()
                logits = graph(*part)[0]
                loss = F.cross_entropy(
                    logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
            else:
                loss = graph(*part)[0]
            (loss / MICRO_BATCHES).backward()
            total += float(loss) / MICRO_BATCHES
        losses.append(total)
        if number == 0:
            gradients = {
                name: p.grad.detach().double().numpy().copy()
                for name, p in graph.parameters.items() if p.grad is not None}
        step.step()
    return losses, gradients


def main():
    models, out = sys.argv[1], sys.argv[2]
    only = sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(2)
    for number, (name, (inputs, loss_kind, rate, micro_batch)) in enumerate(MODELS.items()):
        if only and name not in only:
            continue
        path = os.path.join(models, name + ".onnx")
        generator = np.random.default_rng(17 + number)
        kinds = inputs + ([loss_kind] if loss_kind else [])
        data = [make_data(k, MICRO_BATCHES * micro_batch, generator) for k in kinds]
        graph = Graph(path, torch.float32)
        names = graph.inputs + (["targets"] if loss_kind else [])
        files = {}
        for index, (input_name, array) in enumerate(zip(names, data)):
            files[input_name] = f"{name}.{index}.npy"
            np.save(os.path.join(out, files[input_name]), array)
        momentum = OPTIMIZERS["sgd,momentum=0.9"]
        losses, gradients = run(path, data, loss_kind, momentum, rate, micro_batch, torch.float64)
        losses32, gradients32 = run(path, data, loss_kind, momentum, rate, micro_batch, torch.float32)
        record = {
            "model": name + ".onnx", "micro_batches": MICRO_BATCHES,
            "micro_batch_size": micro_batch, "optimizer": "sgd,momentum=0.9",
            "learning_rate": rate, "loss": "softmax-cross-entropy" if loss_kind else "",
            "inputs": files, "losses": losses,
            "float32_loss_error": max(abs(a - b) / abs(b) for a, b in zip(losses32, losses)),
            "gradients": {}, "optimizers": {},
        }
        for key, value in gradients.items():
            record["gradients"][key] = compared(value, gradients32[key])
        if name == "mlp.train":
            for spelling, optimizer in OPTIMIZERS.items():
                # Small enough that ten steps do not fit eight samples: a
                # relative error means nothing where the loss is 0.
                small = {"sgd": rate, "ada": 1e-4, "rms": 1e-5, "lio": 1e-4}[spelling[:3]]
                record["optimizers"][spelling] = {
                    "learning_rate": small,
                    "losses": run(path, data, loss_kind, optimizer, small, micro_batch, torch.float64)[0]}
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(record, file, indent=1)
        worst = max(g["float32_error"] for g in record["gradients"].values())
        print(f"{name}: losses {losses[0]:.6f} .. {losses[-1]:.6f}, PyTorch float32 is off by "
              f"{record['float32_loss_error']:.1e} (loss), {worst:.1e} (worst gradient)")


if __name__ == "__main__":
    main()
