"""Compares the weights that two programs have trained."""

import math

from ..files import read_floats
from ..numbers import distance, norm
from .programs import STEPS

# Each step rounds the weight that it changes.
ROUNDED = STEPS * 2.0**-24


def worst_difference(initial, expected, found):
    """Of all tensors the largest norm of a difference beyond rounding, relative to
    the norm of what the expected one changed by; and its name."""
    before, wanted, got = map(read_floats, (initial, expected, found))
    worst, where = 0.0, ""
    for name, values in wanted.items():
        change = distance(values, before[name])
        size = norm(values)
        difference = distance(values, got[name]) - ROUNDED * size
        if difference <= 0:
            continue
        ratio = difference / change if change > 0 else math.inf
        if not ratio <= worst:
            worst, where = ratio, name
    return worst, where
