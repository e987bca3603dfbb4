#!/usr/bin/env python3
"""Writes a model of CausalConvWithState and LinearAttention, and its numbers.

As make_edges.py, whose form of a case and of the numbers this is. Each operator has its inputs, and
the states of before where it may have those, as parameters.

    python3 tools/reference/make_state_edges.py test/Inputs/edges

Needs PyTorch 2.15 or newer, its exporter's onnx and NumPy; the tests do not.
"""

import os
import sys

import onnx
import torch
import torch.nn.functional as F

from make_edges import Case, make_cases
from make_image_edges import exported, image

OPSET = 27  # The first with these operators; PyTorch's exporter stops before.


def none(graph):
    value = graph.op("prim::Constant")
    value.setType(torch._C.OptionalType.ofTensor())
    return value


def both(results):
    return torch.cat([result.flatten() for result in results])


def causal_conv(has_past, activation):
    def convolve(x, w, b, past=None):
        if past is None:
            past = x.new_zeros(*x.shape[:2], w.shape[2] - 1)
        padded = torch.cat([past, x], 2)
        y = F.conv1d(padded, w, b, groups=x.shape[1])
        return both([F.silu(y) if activation == "silu" else y, padded[:, :, x.shape[2]:]])

    def write(graph, *inputs):
        results = graph.op("CausalConvWithState", *inputs, outputs=2, activation_s=activation)
        flat = graph.op("Constant", value_t=torch.tensor([-1]))
        return graph.op("Concat", *(graph.op("Reshape", y, flat) for y in results), axis_i=0)
    inputs = {"x": image(2, 3, 5), "w": image(3, 1, 4), "b": [0.5, -1.0, 0.25]}
    if has_past:
        inputs["past"] = image(2, 3, 3)
    return Case(exported(convolve, write), **inputs)


def attend(q, k, v, past, decay, beta, heads, group):
    def unpack(x, count):
        return x.reshape(2, 3, count, -1).transpose(1, 2)
    q, k, v = unpack(q, heads * group), unpack(k, heads), unpack(v, heads)
    state = past if past is not None else q.new_zeros(len(q), heads, k.shape[3], v.shape[3])
    outputs = []
    for i in range(q.shape[2]):
        key, update = k[:, :, i], v[:, :, i]
        if decay is not None:
            state = state * unpack(decay, heads)[:, :, i].exp()[..., None]
        if beta is not None:
            update = update - torch.einsum("bhdm,bhd->bhm", state, key)
            update = update * unpack(beta, beta.shape[2])[:, :, i]
        state = state + key[..., None] * update[:, :, None]
        read = state.repeat_interleave(group, 1)
        outputs.append(torch.einsum("bhd,bhdm->bhm", q[:, :, i], read) / q.shape[3] ** 0.5)
    return both([torch.stack(outputs, 1), state])


def linear_attention(rule, heads=2, group=1, decay=0, beta=0, past=True):
    batch, steps, keys, values = 2, 3, 4, 3
    inputs = {"q": image(batch, steps, heads * group * keys), "k": image(batch, steps, heads * keys) / 3,
              "v": image(batch, steps, heads * values)}
    if past:
        inputs["past"] = image(batch, heads, keys, values)
    if decay:
        inputs["decay"] = -image(batch, steps, decay).abs()
    if beta:
        inputs["beta"] = image(batch, steps, beta).abs() / 2
    optional = ["past", "decay", "beta"]

    def place(given, missing):
        rest = dict(zip([name for name in optional if name in inputs], given[3:]))
        return [*given[:3], *(rest[name] if name in rest else missing() for name in optional)]

    def write(graph, *given):
        results = graph.op("LinearAttention", *place(given, lambda: none(graph)), outputs=2,
                           update_rule_s=rule, q_num_heads_i=heads * group, kv_num_heads_i=heads)
        flat = graph.op("Constant", value_t=torch.tensor([-1]))
        return graph.op("Concat", *(graph.op("Reshape", y, flat) for y in results), axis_i=0)
    return Case(exported(lambda *given: attend(*place(given, lambda: None), heads, group), write),
                **inputs)


def states():
    return {
        "causal_conv": causal_conv(False, "none"),
        "causal_conv_silu": causal_conv(True, "silu"),
        "linear_rule": linear_attention("linear"),
        "linear_from_nothing": linear_attention("linear", past=False),
        "gated": linear_attention("gated", decay=8),
        "gated_by_head": linear_attention("gated", decay=2, group=2),
        "delta": linear_attention("delta", beta=2, past=False),
        "gated_delta": linear_attention("gated_delta", decay=8, beta=1, group=2),
        "gated_delta_of_one": linear_attention("gated_delta", heads=1, group=3, decay=4, beta=1),
    }


def main():
    out = sys.argv[1]
    make_cases(out, "states", lambda: {"states": states()}, opset=20)
    path = os.path.join(out, "states.onnx")
    model = onnx.load(path)
    model.opset_import[0].version = OPSET
    onnx.save(model, path)


if __name__ == "__main__":
    main()
