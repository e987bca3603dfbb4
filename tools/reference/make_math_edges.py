#!/usr/bin/env python3
"""Writes a model of the operators of numbers that Pipewright composes of others, and their numbers.

As make_edges.py, whose form of a case and of the numbers this is: trigonometric and hyperbolic
functions, rounding, reductions, running sums, gathers and scatters, steps, padding, Einsum, and the
steps of recurrent layers.

    python3 tools/reference/make_math_edges.py test/Inputs/edges

Needs PyTorch 2.15 or newer, its exporter's onnx and NumPy; the tests do not.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

from make_edges import Case, make_cases, weighted_sum
from make_image_edges import exported, image, node


class Loop(nn.Module):
    """All outputs of a recurrent layer."""

    def __init__(self, layer, *shape):
        super().__init__()
        self.layer = layer
        self.register_buffer("x", image(*shape))

    def forward(self):
        return weighted_sum(self.layer(self.x)[0]).reshape(1)


def functions():
    far = [s * t for t in (0.0, 1e-3, 0.7, 1.5, 1.6, 3.2, 40.0, 1e3, 12345.6, 98765.4) for s in (1, -1)]
    ends = [s * t for t in (0.0, 1e-30, 1e-4, 0.3, 0.5, 0.9, 0.999, 0.99999, 0.9999999) for s in (1, -1)]
    near = [s * t for t in (0.0, 1e-4, 0.3, 1.0, 5.0, 12.0) for s in (1, -1)]
    steps = [-2.5, -1.5, -1.0, -0.7, -0.5, -0.2, 0.0, 0.2, 0.5, 0.8, 1.0, 1.5, 2.5, 3.0, 1e7, -3e9]
    return {
        "sin": Case(torch.sin, x=far),
        "cos": Case(torch.cos, x=far),
        "tan": Case(torch.tan, x=[-1.2, -0.3, 0.0, 0.1, 1.0, 2.5, 30.0]),
        "sinh": Case(node("Sinh", torch.sinh), x=near),
        "cosh": Case(node("Cosh", torch.cosh), x=near),
        "asinh": Case(node("Asinh", torch.asinh), x=near + [1e4, -1e4]),
        "acosh": Case(node("Acosh", torch.acosh), x=[1.01, 1.5, 2.0, 10.0, 1e4]),
        "atanh": Case(node("Atanh", torch.atanh), x=[-0.9, -0.1, -1e-4, 0.0, 1e-4, 0.3, 0.99]),
        "asin": Case(torch.asin, x=ends),
        "acos": Case(torch.acos, x=ends),
        "atan": Case(torch.atan, x=ends + far + [1e10, -1e25, 3e38, 2.4142134, 0.41421357]),
        "asinh_far": Case(node("Asinh", torch.asinh), x=[1e-30, 0.9, -1.1, 2e9, -1e19, 1e30, 3e38]),
        "acosh_far": Case(node("Acosh", torch.acosh), x=[1.0001, 1.1, 2e9, 1e19, 3e38]),
        "atanh_near_1": Case(node("Atanh", torch.atanh), x=[1e-30, 0.9999, -0.9999]),
        "mod": Case(node("Mod", torch.remainder), x=[5.5, -5.5, 5.5, -5.5, 3.0, -3.0, 1e-3, -7.0],
                    y=[2.0, 2.0, -2.0, -2.0, 3.0, 2.5, 4.0, 0.75]),
        "fmod": Case(node("Mod", torch.fmod, fmod_i=1), x=[5.5, -5.5, 5.5, -5.5, 3.0, -3.0, 1e-3, -7.0],
                     y=[2.0, 2.0, -2.0, -2.0, 3.0, 2.5, 4.0, 0.75]),
        "sign": Case(lambda x: torch.sign(x) * x, x=steps),
        "floor": Case(lambda x: torch.floor(x) * 2 + x, x=steps),
        "ceil": Case(lambda x: torch.ceil(x) * 2 + x, x=steps),
        "round": Case(lambda x: torch.round(x) * 2 + x, x=steps),
        "hardshrink": Case(lambda x: F.hardshrink(x, 0.4), x=[-1.0, -0.3, 0.0, 0.2, 0.5, 3.0]),
    }


def reductions():
    rows = [[1.0, -2.0, 0.5, 3.0, 0.0], [1e4, 1e4, -1e4, 0.0, 9999.0], [-1e4] * 5, [0.0] * 5]
    return {
        "logsumexp": Case(lambda x: torch.logsumexp(x, 1), x=rows),
        "prod": Case(lambda x: x.prod(1), x=[[1.0, -2.0, 0.5], [0.0, 3.0, 2.0], [0.0, 0.0, 4.0]]),
        "norm_1": Case(lambda x: x.norm(p=1, dim=1), x=[[1.0, -2.0, 0.5], [0.0, 3.0, 0.0]]),
        "cumsum": Case(lambda x: x.cumsum(1), x=image(2, 5, 3)),
        "cumsum_of_one": Case(lambda x: x.cumsum(0), x=image(1, 3)),
        "topk": Case(lambda x: torch.topk(x, 2, 1)[0], x=image(3, 5)),
        "max_of_dimension": Case(lambda x: torch.gather(x, 1, x.argmax(1, keepdim=True)), x=image(3, 5)),
        "einsum": Case(lambda a, b: torch.einsum("bij,bkj->bik", a, b), a=image(2, 3, 4), b=image(2, 5, 4)),
        "einsum_summed": Case(lambda a, b: torch.einsum("ij,kl->jk", a, b), a=image(3, 4), b=image(2, 5)),
    }


def compressed():
    mask = torch.tensor([True, False, True, True])
    return exported(lambda x: x[:, mask], lambda graph, x: graph.op(
        "Compress", x, graph.op("Constant", value_t=mask), axis_i=1))


def reversed_sequences(*lengths):
    def turn(x):
        return torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(x, lengths)])

    def write(graph, x):
        given = graph.op("Constant", value_t=torch.tensor(lengths))
        return graph.op("ReverseSequence", x, given, time_axis_i=1, batch_axis_i=0)
    return exported(turn, write)


def joined(reduction, name):
    index = torch.tensor([[0, 2, 2, 1], [3, 0, 1, 1]])

    def write(graph, x, y):
        return graph.op("ScatterElements", x, graph.op("Constant", value_t=index), y, axis_i=1,
                        reduction_s=reduction)
    return exported(lambda x, y: x.scatter_reduce(1, index, y, name), write)


def places():
    index = torch.tensor([[0, 2, 2, 1], [3, 0, 1, 1]])
    rows = torch.tensor([2, 0, 2, 1])
    return {
        "gather": Case(lambda x: torch.gather(x, 1, index), x=image(2, 4)),
        "gather_alike": Case(lambda x: torch.gather(x, 2, index[:1, None].expand(2, 3, 4)), x=image(2, 3, 4)),
        "gather_nd": Case(lambda x: x[rows, index[0]], x=image(3, 4)),
        "index_select": Case(lambda x: x.index_select(1, rows), x=image(2, 3, 5)),
        "scatter": Case(lambda x, y: x.scatter(1, index[:, :2], y), x=image(2, 4), y=image(2, 2)),
        "scatter_add": Case(lambda x, y: x.scatter_add(1, index, y), x=image(2, 4), y=image(2, 4)),
        "scatter_mul": Case(joined("mul", "prod"), x=image(2, 4), y=image(2, 4)),
        "scatter_max": Case(joined("max", "amax"), x=image(2, 4), y=image(2, 4) + 0.3),
        "scatter_min": Case(joined("min", "amin"), x=image(2, 4), y=image(2, 4) + 0.3),
        # Two that are equal share the gradient.
        "scatter_max_ties": Case(joined("max", "amax"), x=[[1.0, 2.0, 0.0, 3.0]] * 2,
                                 y=[[1.0, -1.0, -2.0, 5.0], [3.0, 0.0, 2.0, 1.0]]),
        "scatter_computed": Case(lambda x, y: x.scatter(1, x.argmax(1, keepdim=True), y),
                                 x=image(2, 4), y=image(2, 1)),
        "scatter_add_computed": Case(lambda x, y: x.scatter_add(1, x.argmax(1, keepdim=True), y),
                                     x=image(2, 4), y=image(2, 1)),
        "index_add_computed": Case(lambda x, y: x.index_put((y.argmax(1),), y, accumulate=True),
                                   x=image(4, 3), y=image(3, 3)),
        "compress": Case(compressed(), x=image(2, 4, 3)),
        "reverse_sequence": Case(reversed_sequences(3, 1, 0, 4), x=image(4, 5, 2)),
        "index_put": Case(lambda x, y: x.index_put((rows[1:],), y), x=image(4, 3), y=image(3, 3)),
        "steps": Case(lambda x: x[:, 1::2, ::3], x=image(2, 5, 7)),
        "flip": Case(lambda x: torch.flip(x, (1,)), x=image(2, 5)),
        "roll": Case(lambda x: torch.roll(x, (2, -1), (0, 1)), x=image(4, 5)),
        "pad_reflect": Case(lambda x: F.pad(x, (2, 1, 1, 3), mode="reflect"), x=image(1, 2, 4, 5)),
        "pad_edge": Case(lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"), x=image(1, 2, 4, 5)),
        "pad_wrap": Case(lambda x: F.pad(x, (2, 1, 0, 3), mode="circular"), x=image(1, 2, 4, 5)),
        "pad_value": Case(lambda x: F.pad(x, (2, 1), value=-3.0), x=image(2, 5)),
        "pad_negative": Case(lambda x: F.pad(x, (0, 0, 1, -1)), x=image(2, 4, 3)),
    }


def signals():
    def stft(x, w):
        y = torch.stft(x.flatten(1), 8, 3, window=w, center=False, return_complex=True)
        return torch.view_as_real(y).transpose(1, 2)

    def write(graph, x, w):
        step = graph.op("Constant", value_t=torch.tensor(3))
        return graph.op("STFT", x, step, w)

    def irfft(length):
        def write(graph, x):
            given = graph.op("Constant", value_t=torch.tensor(length))
            return graph.op("DFT", x, given, axis_i=1, inverse_i=1, onesided_i=1)
        return exported(lambda x: torch.fft.irfft(torch.view_as_complex(x), length, 1).unsqueeze(2),
                        write)
    return {
        "stft": Case(exported(stft, write), x=image(2, 20, 1), w=image(8) + 0.1),
        "irfft": Case(irfft(8), x=image(3, 5, 2)),
        "irfft_odd": Case(irfft(7), x=image(3, 4, 2)),
        "irfft_cut": Case(irfft(4), x=image(3, 5, 2)),
        "irfft_filled": Case(irfft(12), x=image(3, 5, 2)),
    }


def loops():
    return {
        "lstm": Loop(nn.LSTM(3, 4, bidirectional=True), 5, 2, 3),
        "lstm_two_layers": Loop(nn.LSTM(3, 4, num_layers=2, batch_first=True, bias=False), 2, 3, 3),
        "gru": Loop(nn.GRU(3, 4, bidirectional=True), 4, 2, 3),
        "rnn": Loop(nn.RNN(3, 4), 4, 2, 3),
        "rnn_relu": Loop(nn.RNN(3, 4, nonlinearity="relu"), 1, 2, 3),
    }


def main():
    make_cases(sys.argv[1], "numbers", bf16=False, make=lambda: {
        "functions": functions(), "reductions": reductions(), "places": places(), "signals": signals(), "loops": loops()}, opset=18)


if __name__ == "__main__":
    main()
