#!/usr/bin/env python3
"""Writes a model of a Scan, a Loop, branches and a function, data, and numbers.

    python3 tools/reference/make_control_flow_reference.py test/Inputs/models test/Inputs/reference

What training of test/Inputs/models/control-flow.onnxtext is compared with: PyTorch's losses and
gradients in float64 of the same steps, written as Python's loops. A recurrent cell runs over time
in a Scan, whose weights stand outside of it; a Loop goes on from its last state, with a branch for
even iterations and one for odd ones, which has a weight of its own. Needs PyTorch and NumPy; the
tests do not.
"""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from make_label_reference import written
from make_reference import write_training

RATE, STEPS, ROUNDS = 0.5, 4, 3
SAMPLES, LENGTH, WIDTH, HIDDEN, CLASSES = 4, 5, 3, 4, 3

TEXT = """\
# A recurrent cell in a Scan, a Loop with branches, and a function. Written by
# tools/reference/make_control_flow_reference.py.
<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
control_flow (float[N, {length}, {width}] x, int64[N] labels) => (float loss)
<int64 rounds = {{{rounds}}}, bool yes = {{1}}, int64 two = {{2}}, int64 none = {{0}}, int64[1] first = {{0}},
  int64[1] hidden = {{{hidden}}},
{weights}>
{{
  batch = Shape<start = 0, end = 1>(x)
  state = Concat<axis = 0>(batch, hidden)
  zero = Constant<value = float {{0}}>()
  start = Expand(zero, state)
  last, states = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
    body = cell (float[N, {hidden}] h, float[N, {width}] row) => (float[N, {hidden}] next, float[N, {hidden}] out) {{
      a = MatMul(row, w)
      c = MatMul(h, u)
      d = Add(a, c)
      e = Add(d, b)
      next = Tanh(e)
      out = Identity(next)
    }}
  >(start, x)
  end, all = Loop(rounds, yes, last) <
    body = round (int64 i, bool go, float[N, {hidden}] h) => (bool go, float[N, {hidden}] next, float[N, {hidden}] out) {{
      rest = Mod(i, two)
      even = Equal(rest, none)
      next = If(even) <
        then_branch = mix () => (float[N, {hidden}] t) {{
          m = MatMul(h, v)
          n = Tanh(m)
          t = Add(n, h)
        }},
        else_branch = stretch () => (float[N, {hidden}] t) <{scale}> {{
          t = Mul(h, scale)
        }}
      >
      out = Neg(next)
    }}
  >
  seen = ReduceMean<axes = [1], keepdims = 0>(states)
  turns = ReduceSum<keepdims = 0>(all, first)
  sum = Sub(seen, turns)
  logits = local.head(sum, k, z)
  loss = SoftmaxCrossEntropyLoss(logits, labels)
}}
<domain: "local", opset_import: ["" : 17]>
head (x, w, b) => (y)
{{
  yes = Constant<value = bool {{1}}>()
  t = MatMul(x, w)
  y = If(yes) <
    then_branch = biased () => (u) {{ u = Add(t, b) }},
    else_branch = plain () => (u) {{ u = Identity(t) }}
  >
}}
"""


def weights():
    def some(*shape):
        return np.round(np.sin(np.arange(1, np.prod(shape) + 1) * 1.7 + len(shape)) * 0.7, 3).reshape(shape)

    return {"w": some(WIDTH, HIDDEN), "u": some(HIDDEN, HIDDEN), "b": some(HIDDEN), "v": some(HIDDEN, HIDDEN) * 0.5,
            "scale": 1 + some(HIDDEN) * 0.25, "k": some(HIDDEN, CLASSES), "z": some(CLASSES) * 0.1}


def compute(p, x):
    h, states, all_states = torch.zeros(len(x), HIDDEN, dtype=x.dtype), [], []
    for t in range(LENGTH):
        h = torch.tanh(x[:, t] @ p["w"] + h @ p["u"] + p["b"])
        states.append(h)
    for i in range(ROUNDS):
        h = h * p["scale"] if i % 2 else torch.tanh(h @ p["v"]) + h
        all_states.append(-h)
    return (torch.stack(states, 1).mean(1) - torch.stack(all_states).sum(0)) @ p["k"] + p["z"]


def loss_of(parameters, x, labels):
    return F.cross_entropy(compute(parameters, x), labels)


def main():
    models, out = sys.argv[1], sys.argv[2]
    texts = {n: written(n, w) for n, w in weights().items()}
    scale = texts.pop("scale").strip()
    text = TEXT.format(length=LENGTH, width=WIDTH, hidden=HIDDEN, rounds=ROUNDS, scale=scale,
                       weights=",\n".join(texts.values()))
    with open(os.path.join(models, "control-flow.onnxtext"), "w") as file:
        file.write(text)
    x = np.round(np.sin(np.arange(SAMPLES * LENGTH * WIDTH) * 0.7), 3).astype(np.float32)
    x, labels = x.reshape(SAMPLES, LENGTH, WIDTH), np.array([0, 2, 1, 2], dtype=np.int64)
    write_training(out, "control-flow", "control-flow.onnxtext", {"x": x, "labels": labels}, weights(), RATE, STEPS,
                   loss_of)


if __name__ == "__main__":
    main()
