#!/usr/bin/env python3
"""Writes the models and numbers of the table of edges (doc/edges.md).

One model holds all cases as branches: each computes something from parameters
of its own at places where numbers end (kinks, tails, masks, variance 0), sums
it with fixed coefficients and multiplies the sum by a parameter of value 1,
whose gradient therefore is the value of the branch. The model's loss is the sum
of all. A second model has its loss outside and labels that are ignored in
unequal numbers, over four micro-batches.

Beside each model, NAME.json has every parameter's gradient by PyTorch in
float64, how far PyTorch's own float32 is from that, and the running statistics
after the step.

    python3 tools/reference/make_edges.py test/Inputs/edges

Needs PyTorch 2.15 or newer, its exporter's onnx and NumPy; the tests do not.
"""

import copy
import json
import os
import sys
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

INFINITY = float("inf")
LOWEST = torch.finfo(torch.float32).min


class Holder(nn.Module):
    """A parameter under a name that ends in `.weight`."""

    def __init__(self, value):
        super().__init__()
        # A tensor of its own: those of one place in memory are exported as one.
        self.weight = nn.Parameter(torch.as_tensor(value, dtype=torch.float32).clone())


def weighted_sum(result):
    """The sum with coefficients from -1 to 1, none of them 0, in no order."""
    if not result.dim():
        return result
    signs = (np.arange(result.numel()) * 7 % 11 - 5.5) / 5.5
    signs = torch.tensor(signs.reshape(result.shape).tolist(), dtype=torch.float32)
    return (result * signs.to(result.dtype)).sum()


class Case(nn.Module):
    def __init__(self, function, **values):
        super().__init__()
        self.function = function
        self.names = list(values)
        for name, value in values.items():
            setattr(self, name, Holder(value))
        self.value = Holder([1.0])

    def forward(self):
        result = self.function(*(getattr(self, name).weight for name in self.names))
        return weighted_sum(result) * self.value.weight


class BatchNorm(nn.Module):
    """Keeps its running statistics where an export finds them."""

    def __init__(self, x):
        super().__init__()
        channels = x.shape[1]
        self.x = Holder(x)
        self.norm = nn.BatchNorm2d(channels) if x.dim() == 4 else nn.BatchNorm1d(channels)
        self.value = Holder([1.0])

    def forward(self):
        return weighted_sum(self.norm(self.x.weight)) * self.value.weight


def around(*kinks):
    """The kinks, and numbers beside them."""
    return [k + d for k in kinks for d in (-1.0, -1e-3, 0.0, 1e-3, 1.0)] + [0.0, 7.5, -7.5]


def attend(mask, dead):
    """Attention whose rows `dead` are masked everywhere; others in part."""
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, 16, 4, generator=generator) for _ in range(3))
    # Scores of dead rows are 0: a mask in float32 leaves nothing of others.
    q[:, :, dead] = 0
    added = torch.zeros(1, 1, 16, 16)
    added[..., 12:] = mask
    added[:, :, dead] = mask
    allowed = added == 0

    def function(q, k, v):
        if mask == -INFINITY:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype))
    return Case(function, q=q, k=k, v=v)


def attend_far(size, spread):
    """Attention with scores of about `size` that differ by about `spread`."""
    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(1, 1, 16, 24, generator=generator) for _ in range(3))
    q, k = q * spread ** 0.5, k * spread ** 0.5
    q[..., 0] = k[..., 0] = (size * 24 ** 0.5) ** 0.5
    return Case(F.scaled_dot_product_attention, q=q, k=k, v=v)


def cross_entropy(logits, labels):
    return Case(lambda z: F.cross_entropy(z, torch.tensor(labels)), z=logits)


def kinks():
    x = around(-3.0, -1.0, 0.0, 2.0, 3.0, 6.0)
    one = [1.0, 1.0, -2.0, 0.0, 3.0, -0.5]
    other = [1.0, 2.0, -2.0, 0.0, 1.0, -0.5]
    image = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 2.0],
                          [-1.0, -1.0, 3.0, 3.0], [-1.0, 5.0, 3.0, 1.0]])
    return {
        "relu": Case(F.relu, x=x),
        "leaky_relu": Case(lambda x: F.leaky_relu(x, 0.1), x=x),
        "prelu": Case(F.prelu, x=x, slope=[0.25]),
        "elu": Case(lambda x: F.elu(x, 0.5), x=x),
        "celu": Case(lambda x: F.celu(x, 0.5), x=x),
        "selu": Case(F.selu, x=x),
        "relu6": Case(F.relu6, x=x),
        "clamp": Case(lambda x: torch.clamp(x, -1.0, 2.0), x=x),
        "clamp_min": Case(lambda x: torch.clamp(x, min=-1.0), x=x),
        "clamp_tensors": Case(torch.clamp, x=one, low=[-2.0] * 6, high=[1.0] * 6),
        "hardsigmoid": Case(F.hardsigmoid, x=x),
        "hardswish": Case(F.hardswish, x=x),
        "abs": Case(torch.abs, x=x),
        "maximum": Case(torch.maximum, x=one, y=other),
        "minimum": Case(torch.minimum, x=one, y=other),
        "amax": Case(lambda x: x.amax(1), x=[one, other, [2.0] * 6]),
        "max_pool": Case(lambda x: F.max_pool2d(x, 2), x=image[None, None]),
        "square": Case(lambda x: x.pow(2), x=x),
        "cube": Case(lambda x: x.pow(3), x=x),
    }


def tails():
    x = [s * t for t in (0.0, 1e-6, 0.3, 3.0, 8.0, 17.0, 20.0, 40.0, 80.0) for s in (1, -1)]
    far = x + [s * t for t in (200.0, 1e4, 1e10) for s in (1, -1)]
    low = [-t for t in (18.0, 20.0, 30.0, 40.0)]
    targets = torch.tensor([float(i % 2) for i in range(len(far))])
    return {
        "softplus": Case(F.softplus, x=far),
        "softplus_below_17": Case(F.softplus, x=low),
        "softplus_beta": Case(lambda x: F.softplus(x, beta=2.0), x=x),
        "logsigmoid": Case(F.logsigmoid, x=far),
        "logsigmoid_above_17": Case(lambda x: F.logsigmoid(-x), x=low),
        "bce_with_logits": Case(lambda x: F.binary_cross_entropy_with_logits(
            x, targets.to(x.dtype)), x=far),
        "mish": Case(lambda x: x * torch.tanh(F.softplus(x)), x=far),
        "silu": Case(F.silu, x=far),
        "gelu": Case(F.gelu, x=far),
        "gelu_tanh": Case(lambda x: F.gelu(x, approximate="tanh"), x=far),
        "tanh": Case(torch.tanh, x=far),
        "sigmoid": Case(torch.sigmoid, x=far),
        "erf": Case(torch.erf, x=far),
        "one_minus_erf": Case(lambda x: 1 - torch.erf(x), x=[3.0, 3.5, 3.8, 3.9, 4.0, 4.5, 9.0]),
        "exp": Case(torch.exp, x=[-100.0, -40.0, -1.0, 0.0, 1.0, 5.0]),
        "log1p": Case(torch.log1p, x=[1e-30, 1e-9, -1e-7, 1e-4, 0.5, 1e4, 1e30]),
    }


def zeros_and_denormals():
    rows = torch.tensor([[0.0, 0.0, 0.0], [1.0, -2.0, 2.0], [0.0, 0.0, 3.0]])
    level = torch.tensor([[0.7] * 4, [1.0, 2.0, 3.0, 4.0], [0.0] * 4])
    denormals = torch.tensor([1e-40, -1e-40, 3e-39, 1e-45, -2e-38, 0.0])
    return {
        "norm": Case(lambda x: x.norm(dim=1), x=rows),
        "normalize": Case(lambda x: F.normalize(x, dim=1, eps=1e-6), x=rows),
        "weight_norm": Case(lambda v, g: g * v / (v.norm(dim=1, keepdim=True) + 1e-3),
                            v=rows, g=[[1.0], [2.0], [3.0]]),
        "std": Case(lambda x: x.std(1), x=[[1.0] * 4, [1.0, 2.0, 3.0, 5.0], [0.0] * 4]),
        "softmax_of_zeros": Case(lambda x: x.softmax(1), x=rows),
        "layer_norm_variance_0": Case(lambda x, s, b: F.layer_norm(x, (4,), s, b),
                                      x=level, s=[1.0, 0.5, 2.0, -1.0], b=[0.0, 1.0, 2.0, 3.0]),
        "layer_norm_offset_1e4": Case(lambda x, s, b: F.layer_norm(x, (4,), s, b),
                                      x=level + 1e4, s=[1.0, 0.5, 2.0, -1.0],
                                      b=[0.0, 1.0, 2.0, 3.0]),
        "batch_norm_variance_0": BatchNorm(torch.tensor(
            [[0.7, 1.0, 0.0], [0.7, 2.0, 0.0], [0.7, -1.0, 0.0], [0.7, 0.5, 0.0]])),
        "batch_norm_batch_1": BatchNorm(torch.arange(12.0).reshape(1, 3, 2, 2).sin()),
        "denormals_product": Case(lambda x: x * 2.0 ** 110, x=denormals),
        "denormals_relu": Case(lambda x: F.relu(x * 2.0 ** 60) * 2.0 ** 60, x=denormals),
        "denormals_softplus": Case(F.softplus, x=denormals),
        "denormals_gelu": Case(F.gelu, x=denormals),
    }


def masks_and_offsets():
    generator = torch.Generator().manual_seed(5)
    small = torch.randn(6, 5, generator=generator)
    ties = torch.tensor([[0.0, 0, -1, 0, -1], [0, 0, 0, 0, 0], [-1, 0, -1, -1, -1],
                         [0, -1, -1, 0, 0], [-1, -1, 0, 0, -1], [0, 0, 0, 0, -1]])
    labels = [0, 3, 2, 4, 1, 0]
    return {
        "attention_-1e4": attend(-1e4, [1, 5, 15]),
        "attention_-1e9": attend(-1e9, [1, 5, 15]),
        "attention_lowest": attend(LOWEST, [1, 5, 15]),
        "attention_-inf": attend(-INFINITY, [1, 5, 15]),
        "attention_all_-1e9": attend(-1e9, list(range(16))),
        "attention_scores_1e3": attend_far(1e3, 1),
        # Each row sees one key alone.
        "attention_scores_1e5": attend_far(1e5, 1e5),
        "cross_entropy": cross_entropy(small, labels),
        "cross_entropy_1e3": cross_entropy(small + 1e3, labels),
        # All numbers up there are multiples of 1/16 and of 64.
        "cross_entropy_1e6": cross_entropy(1e6 + torch.round(16 * small) / 16, labels),
        "cross_entropy_1e9": cross_entropy(1e9 + 64 * ties, labels),
        "cross_entropy_-1e9": cross_entropy(-1e9 + 64 * ties, labels),
        "cross_entropy_ignored": cross_entropy(small, [-100, 3, -100, 4, -100, 0]),
        "cross_entropy_sure": cross_entropy(100 * small, labels),
    }


class Cases(nn.Module):
    """Groups of cases; what is computed is the sum of all."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        for cases in self.groups.values():
            for name, case in cases.items():
                self.add_module(name.replace(".", "_"), case)
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        # One sample, one micro-batch.
        total = F.mse_loss(self.linear(x), torch.zeros(1, 2, dtype=x.dtype)).reshape(1)
        for cases in self.groups.values():
            for case in cases.values():
                total = total + case()
        return total.sum()


class Labels(nn.Module):
    """Logits; the loss stands outside."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 5)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


# The kernel that PyTorch prefers on CPUs loses rows that are masked by -1e9.
PRECISE = [SDPBackend.MATH]
PREFERRED = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]


def gradients(model, loss, dtype, attention=PRECISE):
    model = copy.deepcopy(model).to(dtype)
    with sdpa_kernel(attention):
        value = loss(model, dtype)
        value.backward()
    states = {name: buffer.double().tolist() for name, buffer in model.named_buffers()
              if buffer.dim() and "running" in name}
    found = {name: parameter.grad.detach().double().numpy().copy()
             for name, parameter in model.named_parameters()}
    return float(value.detach()), found, states


def record(model, loss):
    value, exact, states = gradients(model, loss, torch.float64)
    value32, rounded, _ = gradients(model, loss, torch.float32)
    entries = {}
    for name, values in exact.items():
        assert np.isfinite(values).all() and np.isfinite(rounded[name]).all(), name
        entries[name] = {"shape": list(values.shape), "values": values.reshape(-1).tolist(),
                         "torch_error": float(np.linalg.norm(rounded[name] - values))}
    return {"loss": value, "torch_loss_error": abs(value32 - value), "gradients": entries,
            "states": states}


def shortened(values):
    """With more digits than bf16 has."""
    return [float(f"{value:.6g}") for value in values.reshape(-1).tolist()]


def bf16_errors(case):
    """What PyTorch's bf16 loses of each gradient of a case; nothing where it has no such kernel."""
    _, exact, _ = gradients(case, lambda case, dtype: case().sum(), torch.float64)
    errors = dict.fromkeys(exact, 0.0)
    for attention in PRECISE, PREFERRED:
        try:
            _, found, _ = gradients(case, lambda case, dtype: case().sum(), torch.bfloat16, attention)
        except (NotImplementedError, RuntimeError, TypeError):
            continue
        for name, values in exact.items():
            error = float(np.linalg.norm(found[name] - values))
            errors[name] = max(errors[name], error if np.isfinite(error) else 0.0)
    return errors


def record_bf16(model):
    """The numbers of the model's cases where all that is known of a parameter is its bf16."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    entries = {}
    for cases in model.groups.values():
        for name, case in cases.items():
            errors = bf16_errors(case)
            _, exact, _ = gradients(case, lambda case, dtype: case().sum(), torch.float64)
            if not all(np.isfinite(values).all() for values in exact.values()):
                continue
            for key, values in exact.items():
                entries[f"{name.replace('.', '_')}.{key}"] = {
                    "shape": list(values.shape), "values": shortened(values), "torch_error": float(f"{errors[key]:.3g}")}
    return {"gradients": entries}


def export(model, example, names, path, opset=17):
    torch.onnx.export(copy.deepcopy(model).train(), example, path, dynamo=False,
                      do_constant_folding=False, opset_version=opset,
                      training=torch.onnx.TrainingMode.TRAINING,
                      input_names=names, output_names=["y"])
    # The export has run the model, which moved its running statistics.
    file = onnx.load(path)
    state = model.state_dict()
    for tensor in file.graph.initializer:
        value = state[tensor.name].numpy()
        tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    onnx.save(file, path)


def write(out, name, contents):
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump(contents, file, indent=0)
        file.write("\n")


def make_cases(out, name, make, opset=17, bf16=True, **groups):
    """Writes a model of the groups of cases that `make` gives, and its numbers; for bf16, too, unless
    one of its cases has no finite value then."""
    warnings.filterwarnings("ignore")
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(1)
    model = Cases(make())
    x = torch.tensor([[0.5, -1.0, 2.0]])
    np.save(os.path.join(out, f"{name}.x.npy"), x.numpy())
    contents = record(model, lambda model, dtype: model(x.to(dtype)))
    contents["groups"] = {group: [case.replace(".", "_") for case in cases]
                          for group, cases in model.groups.items()}
    if bf16:
        numbers = record_bf16(model)
        known = {key.split(".")[0] for key in numbers["gradients"]}
        numbers["groups"] = {group: [case for case in cases if case in known]
                             for group, cases in contents["groups"].items()}
        write(out, name + ".bf16", numbers)
    contents["groups"].update(groups)
    write(out, name, contents)
    export(model, (x,), ["x"], os.path.join(out, f"{name}.onnx"), opset)


def make_edges(out):
    make_cases(out, "edges", lambda: {"kinks": kinks(), "tails": tails(), "zeros": zeros_and_denormals(),
                                      "masks": masks_and_offsets()},
               **{"batch 1, one micro-batch": ["linear"]})


def make_labels(out):
    torch.manual_seed(2)
    model = Labels()
    x = torch.randn(16, 4)
    labels = torch.randint(0, 5, (16,))
    # Of four micro-batches one has all, one two, one none, one three.
    labels[[4, 6, 8, 9, 10, 11, 15]] = -100
    np.save(os.path.join(out, "labels.x.npy"), x.numpy())
    np.save(os.path.join(out, "labels.targets.npy"), labels.numpy().astype(np.int32))
    contents = record(model, lambda model, dtype: F.cross_entropy(model(x.to(dtype)), labels))
    contents["groups"] = {"ignored labels": ["first", "second"]}
    write(out, "labels", contents)
    export(model, (x[:4],), ["x"], os.path.join(out, "labels.onnx"))


def main():
    warnings.filterwarnings("ignore")
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    make_edges(out)
    make_labels(out)


if __name__ == "__main__":
    main()
