#!/usr/bin/env python3
"""Writes a model of Attention and RotaryEmbedding nodes, data, and numbers.

    python3 tools/reference/make_attention_reference.py test/Inputs/models test/Inputs/reference

What training of test/Inputs/models/attention.onnx is compared with: PyTorch's losses and gradients
(float64) of the same spelled out. Three branches have two heads of k and v for four of q: one with
softcap, a trained bias and a window; a causal one; one with a cache, lengths of samples as a mask,
and values of another width, which alone stays spelled out. The loss has class weights and an
ignored label. Needs onnx 1.23, PyTorch and NumPy; the tests do not.
"""

import os
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from make_reference import write_training

RATE, STEPS, IGNORED, CAP, WINDOW = 0.2, 4, 3, 1.5, 2
BATCH, ROWS, WIDTH, HEADS, KV_HEADS, SIZE, CLASSES, PAST = 2, 6, 16, 4, 2, 8, 5, 3
OPSET = 25


def weights():
    random = np.random.default_rng(3)
    shapes = {"wq": (WIDTH, HEADS * SIZE), "wk": (WIDTH, KV_HEADS * SIZE), "wv": (WIDTH, KV_HEADS * SIZE),
              "narrow": (WIDTH, KV_HEADS * 4), "bias": (HEADS, ROWS, ROWS),
              "past.key": (BATCH, KV_HEADS, PAST, SIZE), "past.value": (BATCH, KV_HEADS, PAST, 4),
              "wo": (HEADS * SIZE, CLASSES), "wo3": (HEADS * 4, CLASSES)}
    return {name: (random.standard_normal(shape) * 0.4).astype(np.float32) for name, shape in shapes.items()}


def tables():
    angles = np.outer(np.arange(10), [1, 0.3, 0.1, 0.03])
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def positions():
    return np.stack([np.arange(ROWS) + 2, np.arange(ROWS)[::-1] + 1])


def mask():
    """A sample of which the first columns do not count, none for its first row."""
    columns = np.arange(PAST + ROWS)
    seen = np.stack([columns >= 0, columns > PAST])[:, None, None, :]
    return np.broadcast_to(seen, (BATCH, 1, ROWS, PAST + ROWS)).copy()


CLASS_WEIGHTS = np.array([1, 2, 3, 0.5, 1.5], np.float32)


def model():
    node = helper.make_node
    shared = {"q_num_heads": HEADS, "kv_num_heads": KV_HEADS}
    nodes = [
        node("MatMul", ["x", "wq"], ["q0"]), node("MatMul", ["x", "wk"], ["k0"]),
        node("MatMul", ["x", "wv"], ["v"]), node("MatMul", ["x", "narrow"], ["v3"]),
        node("RotaryEmbedding", ["q0", "cos", "sin", "positions"], ["q"], num_heads=HEADS, interleaved=1),
        node("RotaryEmbedding", ["k0", "cos", "sin", "positions"], ["k"], num_heads=KV_HEADS, interleaved=1),
        node("Attention", ["q", "k", "v", "bias"], ["y1"], softcap=CAP, left_window_size=WINDOW, **shared),
        node("Attention", ["q", "k", "v"], ["y2"], is_causal=1, scale=0.25, **shared),
        node("Attention", ["q", "k", "v3", "mask", "past.key", "past.value"], ["y3", "keys", "values"],
             is_causal=1, **shared),
        node("Add", ["y1", "y2"], ["y"]), node("MatMul", ["y", "wo"], ["z1"]),
        node("MatMul", ["y3", "wo3"], ["z3"]), node("Add", ["z1", "z3"], ["z"]),
        node("Transpose", ["z"], ["scores"], perm=[0, 2, 1]),
        node("SoftmaxCrossEntropyLoss", ["scores", "labels", "class_weights"], ["loss"],
             ignore_index=IGNORED)]
    cos, sin = tables()
    values = {**weights(), "cos": cos, "sin": sin, "positions": positions(), "mask": mask(),
              "class_weights": CLASS_WEIGHTS}
    graph = helper.make_graph(
        nodes, "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [BATCH, ROWS, WIDTH]),
         helper.make_tensor_value_info("labels", TensorProto.INT64, [BATCH, ROWS])],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(value, name) for name, value in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def rotate(x, heads):
    cos, sin = (torch.tensor(table[positions()])[:, :, None].to(x) for table in tables())
    x = x.view(BATCH, ROWS, heads, SIZE)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).view(x.shape).transpose(1, 2)


def attend(scores, seen, v):
    seen = seen.expand_as(scores)
    scores = scores.masked_fill(~seen, -torch.inf)
    dead = ~seen.any(-1, keepdim=True)
    p = scores.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0)
    return (p @ v.repeat_interleave(HEADS // KV_HEADS, 1)).transpose(1, 2).flatten(2)


def loss_of(w, x, labels):
    q, k = rotate(x @ w["wq"], HEADS), rotate(x @ w["wk"], KV_HEADS)
    v = (x @ w["wv"]).view(BATCH, ROWS, KV_HEADS, SIZE).transpose(1, 2)
    v3 = (x @ w["narrow"]).view(BATCH, ROWS, KV_HEADS, 4).transpose(1, 2)
    row, column = torch.arange(ROWS)[:, None], torch.arange(PAST + ROWS)
    product = q @ k.repeat_interleave(HEADS // KV_HEADS, 1).mT
    capped = CAP * torch.tanh(product / SIZE**0.5 / CAP) + w["bias"]
    y1 = attend(capped, column[:ROWS] >= row - WINDOW, v)
    y2 = attend(product * 0.25, column[:ROWS] <= row, v)
    k3, v3 = torch.cat([w["past.key"], k], 2), torch.cat([w["past.value"], v3], 2)
    product = q @ k3.repeat_interleave(HEADS // KV_HEADS, 1).mT / SIZE**0.5
    y3 = attend(product, torch.tensor(mask()) & (column <= row + PAST), v3)
    z = (y1 + y2) @ w["wo"] + y3 @ w["wo3"]
    return torch.nn.functional.cross_entropy(z.mT, labels, torch.tensor(CLASS_WEIGHTS).to(z),
                                             ignore_index=IGNORED)


def main():
    models, out = sys.argv[1], sys.argv[2]
    onnx.save(model(), os.path.join(models, "attention.onnx"))
    random = np.random.default_rng(4)
    x = random.standard_normal((BATCH, ROWS, WIDTH)).astype(np.float32)
    labels = random.integers(0, CLASSES, (BATCH, ROWS))
    write_training(out, "attention", "attention.onnx", {"x": x, "labels": labels}, weights(), RATE, STEPS, loss_of)


if __name__ == "__main__":
    main()
