#!/usr/bin/env python3
"""Writes a model of attention as exporters spell it out, and its numbers.

As make_edges.py, whose form of a case and of the numbers this is: heads of q that share heads of k
and v, scores that are bounded (Gemma 2), trained biases of scores (T5, Swin), and windows with masks
of their own (Swin), where rows are masked everywhere, scores are far from zero, and sizes are 1 or
differ.

    python3 tools/reference/make_attention_edges.py test/Inputs/edges

Needs PyTorch 2.15 or newer, its exporter's onnx and NumPy; the tests do not.
"""

import sys

import torch
import torch.nn.functional as F

from make_edges import Case, INFINITY, LOWEST, make_cases

BATCH, SIZE = 2, 4


def vectors(heads, key_heads, rows, columns=None, width=None, seed=6, size=SIZE):
    generator = torch.Generator().manual_seed(seed)
    columns = columns or rows
    return {"q": torch.randn(BATCH, heads, rows, size, generator=generator),
            "k": torch.randn(BATCH, key_heads, columns, size, generator=generator),
            "v": torch.randn(BATCH, key_heads, columns, width or size, generator=generator)}


def repeated(x, heads):
    """[B, Hk, T, D] as [B, H, T, D], as transformers spells it."""
    batch, key_heads, rows, size = x.shape
    x = x[:, :, None].expand(batch, key_heads, heads // key_heads, rows, size)
    return x.reshape(batch, heads, rows, size)


def grouped(heads, key_heads, rows, columns=None, width=None, factor=1.0, causal=False):
    operands = vectors(heads, key_heads, rows, columns, width)
    operands["q"] = operands["q"] * factor

    def function(q, k, v):
        return F.scaled_dot_product_attention(q, repeated(k, heads), repeated(v, heads), is_causal=causal)
    return Case(function, **operands)


def grouped_and_hidden(mask, dead):
    """Rows `dead` are masked everywhere; others in part."""
    rows = 16
    operands = vectors(4, 2, rows)
    # Scores of dead rows are 0: a mask in float32 leaves nothing of others.
    operands["q"][:, :, dead] = 0
    added = torch.zeros(1, 1, rows, rows)
    added[..., 12:] = mask
    added[:, :, dead] = mask

    def function(q, k, v):
        k, v = repeated(k, 4), repeated(v, 4)
        if mask == -INFINITY:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=added == 0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype))
    return Case(function, **operands)


def grouped_cases():
    return {
        "grouped": grouped(4, 2, 10),
        "grouped_causal": grouped(6, 2, 9, causal=True),
        "grouped_one_key_head": grouped(3, 1, 7, causal=True),
        "grouped_one_head": grouped(1, 1, 5),
        "grouped_one_row": grouped(4, 2, 1),
        "grouped_other_length": grouped(4, 2, 3, columns=8),
        "grouped_wide_values": grouped(4, 2, 5, width=6),
        "grouped_scores_1e3": grouped(4, 2, 11, factor=1e3),
        "grouped_-1e9": grouped_and_hidden(-1e9, [1, 5, 15]),
        "grouped_lowest": grouped_and_hidden(LOWEST, [1, 5, 15]),
        "grouped_-inf": grouped_and_hidden(-INFINITY, [1, 5, 15]),
        "grouped_all_-1e9": grouped_and_hidden(-1e9, list(range(16))),
    }


def spelled(bound=0.0, mask=None, causal=False, dead=(), bias=None, heads=2, key_heads=2, rows=12,
            factor=1.0, size=SIZE):
    """Products, softmax, products, as eager attention of transformers has them."""
    operands = vectors(heads, key_heads, rows, seed=7, size=size)
    operands["q"] = operands["q"] * factor
    added = torch.zeros(1, 1, rows, rows)
    if mask is not None:
        operands["q"][:, :, list(dead)] = 0
        added[..., rows - 3:] = mask
        added[:, :, list(dead)] = mask
    if causal:
        added = added + torch.triu(torch.full((rows, rows), LOWEST / 2), 1)
    if bias:
        operands["bias"] = torch.randn(bias, generator=torch.Generator().manual_seed(8))
        operands["bias"][..., list(dead), :] = 0

    def function(q, k, v, bias=None):
        scores = q @ repeated(k, heads).transpose(2, 3) * 0.5
        if bound:
            scores = torch.tanh(scores / bound) * bound
        if bias is not None:
            scores = scores + bias
        if mask is not None or causal:
            scores = scores + added.to(scores.dtype)
        return scores.softmax(-1) @ repeated(v, heads)
    return Case(function, **operands)


def softcap_cases():
    return {
        "softcap": spelled(2.0),
        "softcap_50_causal": spelled(50.0, causal=True),
        "softcap_grouped": spelled(0.5, heads=4, key_heads=2, causal=True),
        "softcap_scores_1e3": spelled(5.0, factor=1e3),
        "softcap_one_row": spelled(1.0, rows=1, heads=3, key_heads=1),
        "softcap_-1e9": spelled(3.0, mask=-1e9, dead=[0, 4]),
    }


def bias_cases():
    return {
        "bias_of_heads": spelled(bias=(1, 2, 12, 12)),
        "bias_of_all": spelled(bias=(12, 12), causal=True),
        "bias_of_samples": spelled(bias=(BATCH, 1, 12, 12), heads=4),
        "bias_of_columns": spelled(bias=(1, 2, 1, 12)),
        "bias_softcap_grouped": spelled(1.5, bias=(4, 12, 12), heads=4, key_heads=1, causal=True),
        "bias_softcap_wide_heads": spelled(1.5, bias=(2, 5, 5), rows=5, causal=True, size=260),
        "bias_one_row": spelled(bias=(1, 3, 1, 1), rows=1, heads=3, key_heads=3),
        "bias_scores_1e3": spelled(bias=(1, 2, 12, 12), factor=1e3),
        "bias_-1e9": spelled(bias=(1, 2, 12, 12), mask=-1e9, dead=[0, 4]),
    }


def windows(bias, images=BATCH, mask=-100.0, factor=False, heads=2, rows=6):
    """Three windows of each image, two of them with a mask, as torchvision's Swin adds it."""
    generator = torch.Generator().manual_seed(9)
    count = 3 * images
    operands = {name: torch.randn(count, heads, rows, SIZE, generator=generator) for name in "qkv"}
    if bias:
        operands["bias"] = torch.randn(1, heads, rows, rows, generator=generator)
    if factor:
        operands["factor"] = torch.rand(heads, 1, 1, generator=generator) + 0.5
    added = torch.zeros(3, rows, rows)
    added[1, :2, 2:] = added[1, 2:, :2] = added[2, :, 3:] = mask

    def function(q, k, v, *more):
        more = dict(zip(list(operands)[3:], more))
        scores = q @ k.transpose(2, 3) * more.get("factor", 0.5)
        if bias:
            scores = scores + more["bias"]
        scores = scores.view(images, 3, heads, rows, rows) + added.to(scores.dtype)[None, :, None]
        return scores.view(count, heads, rows, rows).softmax(-1) @ v
    return Case(function, **operands)


def window_cases():
    return {
        "windows": windows(False),
        "windows_bias": windows(True),
        "windows_of_one_image": windows(True, images=1),
        "windows_-inf": windows(True, mask=-INFINITY),
        "windows_factor": windows(True, factor=True),
        "windows_factor_of_heads": windows(False, factor=True, heads=5),
    }


def main():
    make_cases(sys.argv[1], "attention",
               lambda: {"grouped": grouped_cases(), "softcap": softcap_cases(), "biases": bias_cases(),
                        "windows": window_cases()})


if __name__ == "__main__":
    main()
