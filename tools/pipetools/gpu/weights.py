"""Compares the weights that two programs have trained."""

import array
import json
import math
import struct

from .programs import STEPS

# Each step rounds the weight that it changes.
ROUNDED = STEPS * 2.0**-24


def read_weights(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        body = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = array.array("f", body[begin:end])
    return tensors


def distance(x, y):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y)))


def worst_difference(initial, expected, found):
    """Of all tensors the largest norm of a difference beyond rounding, relative to
    the norm of what the expected one changed by; and its name."""
    before, wanted, got = map(read_weights, (initial, expected, found))
    worst, where = 0.0, ""
    for name, values in wanted.items():
        change = distance(values, before[name])
        size = distance(values, [0.0] * len(values))
        difference = distance(values, got[name]) - ROUNDED * size
        if difference <= 0:
            continue
        ratio = difference / change if change > 0 else math.inf
        if not ratio <= worst:
            worst, where = ratio, name
    return worst, where
