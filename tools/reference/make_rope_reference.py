#!/usr/bin/env python3
"""Exports a small decoder with rotary positions and writes PyTorch's numbers for it.

    python3 tools/reference/make_rope_reference.py test/Inputs/models test/Inputs/reference

The exporter is the newer one (dynamo), whose notes beside the graph say what was a
parameter and what a buffer: tables of cosines and sines, ones, zeros. It merges equal
vectors and stores the weights of products transposed. The numbers (losses of ten steps,
gradients of the first as in make_reference.py) come from the module itself in float64,
not from the graph, so they know nothing of what the exporter did.

`rope.json` trains everything, `rope.head.json` the last layer norm alone, with all
else frozen.

Needs PyTorch 2.9 or newer with onnx and onnxscript; the tests do not.
"""

import ast
import json
import math
import os
import sys

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

from make_reference import signs

MICRO_BATCHES, MICRO_BATCH, STEPS, PROJECTIONS = 4, 2, 10, 16
WIDTH, HEADS, POSITIONS, TOKENS, LAYERS = 16, 2, 16, 40, 2
RATE = 0.1


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH, bias=False)
        self.v = nn.Linear(WIDTH, WIDTH, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ln2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        batch, time, width = x.shape
        split = lambda t: t.view(batch, time, HEADS, width // HEADS).transpose(1, 2)

        def turn(t):
            low, high = t.chunk(2, -1)
            return t * cos + torch.cat([-high, low], -1) * sin

        y = self.ln1(x)
        q, k, v = turn(split(self.q(y))), turn(split(self.k(y))), split(self.v(y))
        mask = torch.full((time, time), float("-inf"), dtype=x.dtype).triu(1)
        weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // HEADS) + mask, dim=-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.silu(self.up(self.ln2(x))))


class Decoder(nn.Module):
    """The embedding is tied to the head; `ones` and `zeros` equal fresh layer norms."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.head.weight = self.embedding.weight
        size = WIDTH // HEADS
        rates = 10000.0 ** -(torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(POSITIONS).float(), rates)
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("ones", torch.ones(WIDTH))
        self.register_buffer("zeros", torch.zeros(WIDTH))

    def forward(self, tokens):
        x = self.embedding(tokens) * self.ones + self.zeros
        cos, sin = self.cos[None, None], self.sin[None, None]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def module():
    torch.manual_seed(0)
    return Decoder()


def export(path):
    """Writes the model without what tells about the machine, and returns it."""
    tokens = torch.zeros(MICRO_BATCH, POSITIONS, dtype=torch.int64)
    program = torch.onnx.export(module(), (tokens,), dynamo=True, opset_version=20, verbose=False)
    model = program.model_proto
    keep = ("pkg.torch.export", "pkg.onnxscript", "pkg.torch.onnx.fx_node")
    for message in [model, model.graph, *model.graph.node, *model.graph.value_info]:
        message.ClearField("doc_string")
        notes = [entry for entry in message.metadata_props if entry.key.startswith(keep)]
        del message.metadata_props[:]
        message.metadata_props.extend(notes)
    onnx.save(model, path)
    return model


def names_in_file(model):
    """By parameter: its name in the file, and whether it stands there transposed."""
    found, copies = {}, {}
    kind = "pkg.torch.export.graph_signature.InputSpec.kind"
    for value in model.graph.value_info:
        notes = {entry.key: entry.value for entry in value.metadata_props}
        if notes.get(kind) == "PARAMETER":
            found[value.name] = (value.name, False)
        elif "pkg.onnxscript.optimizer.folded_from" in notes:
            sources = ast.literal_eval(notes["pkg.onnxscript.optimizer.folded_from"])
            if len(sources) == 1:
                copies[sources[0]] = (value.name, True)
    return {**copies, **found}


def run(data, targets, trained, dtype):
    """Losses of the steps; gradients of the first by the name of the parameter."""
    decoder = module().to(dtype)
    for name, parameter in decoder.named_parameters():
        parameter.requires_grad_(trained(name))
    parameters = [p for p in decoder.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, RATE, momentum=0.9, weight_decay=0.01)
    losses, gradients = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for m in range(MICRO_BATCHES):
            part = slice(m * MICRO_BATCH, (m + 1) * MICRO_BATCH)
            logits = decoder(torch.from_numpy(data[part]).long())
            loss = F.cross_entropy(logits.reshape(-1, TOKENS),
                                   torch.from_numpy(targets[part]).long().reshape(-1))
            (loss / MICRO_BATCHES).backward()
            total += loss.item() / MICRO_BATCHES
        losses.append(total)
        if step == 0:
            gradients = {name: p.grad.detach().double().numpy().copy()
                         for name, p in decoder.named_parameters() if p.grad is not None}
        optimizer.step()
    return losses, gradients


def record(name, files, data, targets, names, trained):
    losses, gradients = run(data, targets, trained, torch.float64)
    losses32, gradients32 = run(data, targets, trained, torch.float32)
    entries = {}
    for parameter, value in gradients.items():
        # The exporter names the tied weight after its last user.
        key, transposed = names.get(parameter) or names.get("head.weight") \
            if parameter == "embedding.weight" else names.get(parameter, (parameter, False))
        error = gradients32[parameter] - value
        if transposed:
            value = value.T
        flat = np.ascontiguousarray(value).reshape(-1)
        norm = float(np.linalg.norm(flat))
        entries[key] = {
            "shape": list(value.shape), "norm": norm,
            "float32_error": float(np.linalg.norm(error)) / norm if norm else 0.0,
            "projections": [float(flat @ signs(flat.size, k)) for k in range(PROJECTIONS)]}
    print(f"{name}: {len(entries)} gradients, losses {losses[0]:.6f} .. {losses[-1]:.6f}")
    return {
        "model": "rope.onnx", "micro_batches": MICRO_BATCHES, "micro_batch_size": MICRO_BATCH,
        "optimizer": "sgd,momentum=0.9,weight_decay=0.01", "learning_rate": RATE,
        "loss": "softmax-cross-entropy", "inputs": files, "losses": losses,
        "float32_loss_error": max(abs(a - b) / abs(b) for a, b in zip(losses32, losses)),
        "gradients": entries, "optimizers": {}}


def main():
    models, out = sys.argv[1], sys.argv[2]
    torch.set_num_threads(1)
    model = export(os.path.join(models, "rope.onnx"))
    names = names_in_file(model)
    generator = np.random.default_rng(11)
    data, targets = (generator.integers(0, TOKENS, [MICRO_BATCHES * MICRO_BATCH, POSITIONS])
                     .astype(np.int32) for _ in range(2))
    files = {"tokens": "rope.0.npy", "targets": "rope.1.npy"}
    for file, array in zip(files.values(), (data, targets)):
        np.save(os.path.join(out, file), array)
    for name, trained in (("rope", lambda name: True),
                          ("rope.head", lambda name: name.startswith("norm."))):
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(record(name, files, data, targets, names, trained), file, indent=1)


if __name__ == "__main__":
    main()
