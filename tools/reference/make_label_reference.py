#!/usr/bin/env python3
"""Writes a model whose labels are shifted and partly ignored, data, and numbers.

    python3 tools/reference/make_label_reference.py test/Inputs/models test/Inputs/reference

What training of test/Inputs/models/labels.onnxtext is compared with: PyTorch's
cross entropy (float64) of the whole batch, the mean over all labels that are not
ignored, however many micro-batches the batch is cut into. One sample of four has
no label at all, another only a single one. Needs PyTorch and NumPy; the tests do
not.
"""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from make_reference import write_training

IGNORED, RATE, STEPS = -100, 0.5, 4
SAMPLES, LENGTH, WIDTH, HIDDEN, CLASSES = 4, 4, 3, 8, 5
LABELS = [[0, IGNORED, IGNORED, IGNORED], [4, 1, IGNORED, 2], [3, 0, 4, 1], [IGNORED, IGNORED, IGNORED, 3]]

TEXT = """\
# A language model in miniature: labels are the inputs' of one place further, and
# -100 is none. Written by tools/reference/make_label_reference.py.
<ir_version: 9, opset_import: ["" : 17]>
labels (float[N, {length}, {width}] x, int64[N, {length}] labels) => (float loss)
<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{{last}}}, int64[1] end = {{{length}}},
  int64[2] rows = {{-1, {classes}}}, int64[1] flat = {{-1}},
{weights}>
{{
  t1 = MatMul(x, w1)
  u1 = Add(t1, b1)
  h = Tanh(u1)
  t2 = MatMul(h, w2)
  z = Add(t2, b2)
  kept = Slice(z, zero, last, one)
  next = Slice(labels, one, end, one)
  logits = Reshape(kept, rows)
  targets = Reshape(next, flat)
  loss = SoftmaxCrossEntropyLoss<ignore_index = {ignored}, reduction = "mean">(logits, targets)
}}
"""


def weights():
    def some(*shape):
        return np.round(np.sin(np.arange(1, np.prod(shape) + 1) * 1.3) * 0.5, 3).reshape(shape)

    return {"w1": some(WIDTH, HIDDEN), "b1": some(HIDDEN), "w2": some(HIDDEN, CLASSES), "b2": some(CLASSES)}


def written(name, value):
    shape = ", ".join(map(str, value.shape))
    numbers = [f"{v:g}" for v in value.reshape(-1)]
    lines = [", ".join(numbers[i : i + 12]) for i in range(0, len(numbers), 12)]
    return f"  float[{shape}] {name} = {{" + ",\n   ".join(lines) + "}"


def loss_of(parameters, x, labels):
    h = torch.tanh(x @ parameters["w1"] + parameters["b1"])
    z = h @ parameters["w2"] + parameters["b2"]
    return F.cross_entropy(z[:, :-1].reshape(-1, CLASSES), labels[:, 1:].reshape(-1), ignore_index=IGNORED)


def main():
    models, out = sys.argv[1], sys.argv[2]
    text = TEXT.format(length=LENGTH, width=WIDTH, last=LENGTH - 1, classes=CLASSES, ignored=IGNORED,
                       weights=",\n".join(written(n, w) for n, w in weights().items()))
    with open(os.path.join(models, "labels.onnxtext"), "w") as file:
        file.write(text)
    x = np.round(np.sin(np.arange(SAMPLES * LENGTH * WIDTH) * 0.7), 3).astype(np.float32)
    x, labels = x.reshape(SAMPLES, LENGTH, WIDTH), np.array(LABELS, dtype=np.int64)
    write_training(out, "labels", "labels.onnxtext", {"x": x, "labels": labels}, weights(), RATE, STEPS, loss_of)


if __name__ == "__main__":
    main()
