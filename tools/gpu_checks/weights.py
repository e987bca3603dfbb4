"""Compares the weights that two programs have trained."""

import array
import json
import math
import struct


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
    """Of all tensors the largest norm of a difference, relative to the norm of what
    the expected one changed by; and its name."""
    before, wanted, got = map(read_weights, (initial, expected, found))
    worst, where = 0.0, ""
    for name, values in wanted.items():
        change, difference = distance(values, before[name]), distance(values, got[name])
        if change > 0 and not difference / change <= worst:
            worst, where = difference / change, name
    return worst, where
