"""Norms, and medians as tables show them."""

import math
import statistics


def norm(values):
    return math.sqrt(sum(value * value for value in values))


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))


def with_range(values, digits=2):
    """The median in bold, and the least and the largest value."""
    return (f"**{statistics.median(values):.{digits}f}** "
            f"({min(values):.{digits}f} to {max(values):.{digits}f})")
