"""The rule of what "a GPU agrees with the CPU target" means.

Both compute the same numbers, but sum them in other orders (and in tf32 a GPU rounds what it
multiplies, which the CPU target does not). So losses and gradients differ by what is rounded off,
in relation to their size, and weights in relation to what they have changed by: against their
size, a step that is lost altogether would hardly show."""

import math
import statistics

from .numbers import distance, norm

# Of a loss: in f32 some hundred units in the last place, since thousands of numbers are added up;
# in tf32 and bf16, where sums are f32, a few of theirs.
LOSS = {"f32": 2e-5, "tf32": 1e-2, "bf16": 2e-2}
# Of the norm of one gradient. tf32 is compared with f32: where a maximum or a sign of a ReLU is
# another, gradients take other ways (LeNet: 4e-2).
ONCE = {**LOSS, "tf32": 5e-2}
# A model differs from itself when it sums in another order. It may differ by so many times that; if
# this is more than ONCE, the model amplifies what is rounded off: in tf32 and bf16 by what these
# round more than f32 (f32 to 24 bits, tf32 to 11, bf16 to 8). But results of something else would
# differ by all of their size.
AMPLIFICATION = 5
ROUNDS_MORE = {"f32": 1, "tf32": 2.0**13, "bf16": 2.0**16}
LARGEST = 0.5
# Where f32 is off by more than this, results in tf32 and bf16 have nothing left in common; those of
# two CPU programs neither (a ResNet-50 with few samples: 99 % of the norm of its gradients).
LOST = 1e-3
# A tensor that is small beside the others is off by what these round: this share of a middling
# one's norm counts as its own. (Of all norms it would hide weights behind running statistics.)
SHARE = 0.1
# A step rounds the weight that it changes.
ROUNDED = 2.0**-24


def allowed_of_loss(precision, own):
    return max(LOSS[precision], AMPLIFICATION * own)


def allowed(precision, steps=0, own=0.0, measured="f32"):
    """The largest difference of a gradient, or of what weights changed by in `steps`: each step's
    gradient is off by ONCE, and each step puts the weights of all later ones off by as much.
    `own`: what the model differs by from itself, in the format `measured`."""
    most = ONCE[precision] * (1 + steps)
    if AMPLIFICATION * own <= ONCE[measured]:
        return most
    amplified = AMPLIFICATION * own * ROUNDS_MORE[precision] / ROUNDS_MORE[measured]
    return max(most, min(amplified, LARGEST))


def is_comparable(precision, own):
    return precision == "f32" or own <= LOST


def worst_difference(found, expected, before=None, steps=0):
    """Of tensors by name the largest norm of a difference, in relation to the norm of the expected
    one or of its change since `before`; and its name."""
    size = {name: distance(values, before[name]) if before else norm(values)
            for name, values in expected.items()}
    middling = statistics.median(size.values())
    worst, where = 0.0, ""
    for name, values in expected.items():
        difference = distance(values, found[name]) - steps * ROUNDED * norm(values)
        if difference <= 0:
            continue
        scale = size[name] + SHARE * middling
        ratio = difference / scale if scale > 0 else math.inf
        if not ratio <= worst:
            worst, where = ratio, name
    return worst, where
