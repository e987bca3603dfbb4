#!/usr/bin/env python3
"""Writes a model of the operators of images that Pipewright composes of others, and their numbers.

As make_edges.py, whose form of a case and of the numbers this is: group and instance
normalization, transposed convolution, interpolation, pools, blocks that become channels.

    python3 tools/reference/make_image_edges.py test/Inputs/edges

Needs PyTorch 2.15 or newer, its exporter's onnx and NumPy; the tests do not.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from make_edges import Case, make_cases


def image(*shape):
    """Numbers from -2 to 2, in no order."""
    count = int(np.prod(shape))
    return torch.tensor((np.arange(count) * 37 % 101 / 25 - 2).reshape(shape), dtype=torch.float32)


def exported(function, write):
    """The function, whose exported form `write` makes."""
    class AsNode(torch.autograd.Function):
        @staticmethod
        def forward(context, *arguments):
            return function(*arguments)

        @staticmethod
        def symbolic(graph, *arguments):
            return write(graph, *arguments)

    return lambda *x: (AsNode.apply if torch.onnx.is_in_onnx_export() else function)(*x)


def node(op, function, **attributes):
    return exported(function, lambda graph, *x: graph.op(op, *x, **attributes))


def resize_to(height, width, mode):
    """Interpolation with antialias, which the exporter does not write."""
    def write(graph, x):
        sizes = graph.op("Constant", value_t=torch.tensor([height, width]))
        none = graph.op("prim::Constant")
        none.setType(torch._C.OptionalType.ofTensor())
        return graph.op("Resize", x, none, none, sizes, mode_s=mode, axes_i=[2, 3], antialias_i=1,
                        exclude_outside_i=1, cubic_coeff_a_f=-0.5)

    return exported(lambda x: F.interpolate(x, size=(height, width), mode="bi" + mode,
                                            antialias=True), write)


def group_norm_18(x, scale, bias):
    y = F.group_norm(x, 2).unflatten(1, (2, -1))
    return (y * scale[:, None, None, None] + bias[:, None, None, None]).flatten(1, 2)


def normalized(x, p):
    """Zeros stay zeros, with a gradient of 0."""
    norm = x.norm(p, dim=1, keepdim=True)
    return torch.where(norm == 0, 0, x / torch.where(norm == 0, 1, norm))


def lp_norms():
    x = image(2, 3, 4, 5) + 0.8
    x[0, :, 1, 2] = 0
    rows = image(3, 2, 6)
    rows[1, 1] = 0
    def deviation(x):
        centered = x - x.mean((0, 2, 3), keepdim=True)
        return centered / (centered.square().mean((0, 2, 3), keepdim=True).sqrt() + 1e-9)
    return {
        "lp_normalization_1": Case(node("LpNormalization", lambda x: normalized(x, 1), axis_i=1,
                                        p_i=1), x=x),
        "lp_normalization_2": Case(node("LpNormalization", lambda x: normalized(x, 2), axis_i=1,
                                        p_i=2), x=x),
        "lp_pool_2": Case(node("LpPool", lambda x: x.unfold(2, 2, 1).unfold(3, 2, 1).norm(
            dim=(4, 5)), kernel_shape_i=[2, 2]), x=x.abs() + 0.1),
        "lp_pool_3": Case(node("LpPool", lambda x: x.abs().pow(3).unfold(2, 3, 2).sum(3).pow(1 / 3),
                               kernel_shape_i=[3], strides_i=[2], p_i=3), x=image(2, 3, 7)),
        "global_lp_pool": Case(node("GlobalLpPool", lambda x: x.norm(dim=2, keepdim=True)), x=rows),
        "mean_variance": Case(node("MeanVarianceNormalization", deviation), x=image(2, 3, 4, 5)),
    }


def norms():
    # With these numbers no sum is a small difference of large ones.
    x = torch.randn(2, 4, 3, 5, generator=torch.Generator().manual_seed(206))
    scale, bias = [1.0, 0.5, -2.0, 3.0], [0.0, 1.0, -1.0, 0.25]
    level = torch.cat([x[:, :2], torch.full_like(x[:, 2:], 0.75)], 1)
    return {
        "group_norm": Case(lambda x, s, b: F.group_norm(x, 2, s, b), x=x, s=scale, b=bias),
        "group_norm_1": Case(lambda x, s, b: F.group_norm(x, 1, s, b), x=x, s=scale, b=bias),
        "group_norm_4": Case(lambda x, s, b: F.group_norm(x, 4, s, b), x=x, s=scale, b=bias),
        "group_norm_plain": Case(lambda x: F.group_norm(x, 2), x=x),
        "group_norm_fresh": Case(lambda x, s, b: F.group_norm(x, 4, s, b), x=x, s=[1.0] * 4,
                                 b=[0.0] * 4),
        "group_norm_variance_0": Case(lambda x, s, b: F.group_norm(x, 2, s, b), x=level, s=scale,
                                      b=bias),
        "group_norm_of_a_matrix": Case(lambda x, s, b: F.group_norm(x, 1, s, b), x=image(3, 4),
                                       s=scale, b=bias),
        "group_normalization": Case(node("GroupNormalization", group_norm_18, num_groups_i=2), x=x,
                                    s=[1.0, 2.0], b=[1.5, -2.0]),
        "instance_norm": Case(lambda x, s, b: F.instance_norm(x, weight=s, bias=b), x=x, s=scale,
                              b=bias),
        "instance_norm_1d": Case(lambda x, s, b: F.instance_norm(x, weight=s, bias=b),
                                 x=image(2, 4, 7), s=scale, b=bias),
        "instance_norm_plain": Case(F.instance_norm, x=x),
    }


def transposed():
    x = image(2, 4, 3, 5)
    return {
        "conv_transpose": Case(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1,
                                                                  output_padding=1),
                               x=x, w=image(4, 3, 3, 3), b=[1.0, -1.0, 0.5]),
        "conv_transpose_2": Case(lambda x, w: F.conv_transpose2d(x, w, stride=2), x=x,
                                 w=image(4, 2, 2, 2)),
        "conv_transpose_1": Case(lambda x, w, b: F.conv_transpose2d(x, w, b, padding=1), x=x,
                                 w=image(4, 3, 3, 3), b=[1.0, -1.0, 0.5]),
        "conv_transpose_groups": Case(lambda x, w, b: F.conv_transpose2d(
            x, w, b, stride=(3, 2), padding=(1, 0), groups=2), x=x, w=image(4, 3, 2, 3),
            b=[1.0, -1.0, 0.5, 2.0, 0.0, -0.5]),
        "conv_transpose_dilated": Case(lambda x, w: F.conv_transpose2d(
            x, w, stride=(1, 2), output_padding=(1, 1), dilation=(2, 3)), x=x,
            w=image(4, 1, 2, 2)),
        "conv_transpose_gaps": Case(lambda x, w: F.conv_transpose2d(
            x, w, stride=3, output_padding=2), x=x, w=image(4, 2, 1, 2)),
        "conv_transpose_1d": Case(lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1),
                                  x=image(2, 3, 6), w=image(3, 2, 4), b=[0.5, -1.0]),
    }


def interpolations():
    x = image(2, 3, 5, 4)
    def to(size, mode, **options):
        return Case(lambda x: F.interpolate(x, size=size, mode=mode, **options), x=x)
    def by(factor, mode, **options):
        return Case(lambda x: F.interpolate(x, scale_factor=factor, mode=mode, **options), x=x)
    return {
        "nearest_by_2": by(2.0, "nearest"),
        "nearest_by_3_and_1": by((3.0, 1.0), "nearest"),
        "nearest_by_1.6": by(1.6, "nearest"),
        "nearest_to_3x3": to((3, 3), "nearest"),
        "nearest_to_7x9": to((7, 9), "nearest"),
        "bilinear_by_2": by(2.0, "bilinear"),
        "bilinear_by_1.7": by(1.7, "bilinear"),
        "bilinear_to_3x7": to((3, 7), "bilinear"),
        "bilinear_to_1x1": to((1, 1), "bilinear"),
        "bilinear_corners": to((9, 7), "bilinear", align_corners=True),
        "bilinear_corners_to_2x1": to((2, 1), "bilinear", align_corners=True),
        "bicubic_by_2": by(2.0, "bicubic"),
        "bicubic_to_3x9": to((3, 9), "bicubic"),
        "bicubic_corners": to((8, 3), "bicubic", align_corners=True),
        "bilinear_antialias": Case(resize_to(3, 3, "linear"), x=x),
        "bicubic_antialias": Case(resize_to(2, 6, "cubic"), x=x),
        "linear_1d": Case(lambda x: F.interpolate(x, size=8, mode="linear"), x=image(2, 3, 5)),
        "trilinear": Case(lambda x: F.interpolate(x, size=(5, 2, 6), mode="trilinear"),
                          x=image(1, 2, 3, 4, 3)),
    }


def pools():
    x = image(2, 3, 8, 7)
    return {
        "avg_pool_ceil": Case(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), x=x),
        "avg_pool_ceil_uncounted": Case(lambda x: F.avg_pool2d(
            x, 3, 2, 1, ceil_mode=True, count_include_pad=False), x=x),
        "avg_pool_1d": Case(lambda x: F.avg_pool1d(x, 2, ceil_mode=True), x=image(2, 3, 7)),
        "max_pool_1d": Case(lambda x: F.max_pool1d(x, 3, 2, 1), x=image(2, 3, 7)),
        "conv_1d": Case(lambda x, w, b: F.conv1d(x, w, b, padding=1, dilation=2), x=image(2, 3, 7),
                        w=image(4, 3, 3), b=[1.0, 0.0, -1.0, 0.5]),
    }


def unpool(x):
    def write(graph, x):
        y, places = graph.op("MaxPool", x, outputs=2, kernel_shape_i=[2, 3], strides_i=[2, 3])
        return graph.op("MaxUnpool", y, places, kernel_shape_i=[2, 3], strides_i=[2, 3])

    def pool_and_back(x):
        y, places = F.max_pool2d(x, (2, 3), return_indices=True)
        zeros = torch.zeros_like(x).flatten(2)
        return zeros.scatter(2, places.flatten(2), y.flatten(2)).view_as(x)
    return exported(pool_and_back, write)(x)


def volumes():
    x = image(2, 4, 4, 5, 3)
    ties = torch.round(image(1, 2, 4, 3, 5))
    return {
        "conv_3d": Case(lambda x, w, b: F.conv3d(x, w, b, padding=1), x=x, w=image(3, 4, 3, 3, 3),
                        b=[1.0, -1.0, 0.5]),
        "conv_3d_groups": Case(lambda x, w: F.conv3d(x, w, stride=(2, 1, 2), padding=(1, 0, 1),
                                                     dilation=(2, 1, 1), groups=2),
                               x=x, w=image(6, 2, 2, 3, 1)),
        "conv_3d_of_points": Case(F.conv3d, x=x, w=image(2, 4, 1, 1, 1)),
        "conv_transpose_3d": Case(lambda x, w, b: F.conv_transpose3d(
            x, w, b, stride=2, padding=1, output_padding=1), x=x, w=image(4, 2, 3, 3, 3),
            b=[0.5, -1.0]),
        "conv_transpose_3d_groups": Case(lambda x, w: F.conv_transpose3d(
            x, w, stride=(1, 2, 1), dilation=(2, 1, 1), groups=2), x=x, w=image(4, 1, 2, 2, 1)),
        "max_pool_3d": Case(lambda x: F.max_pool3d(x, 2, 1, 1), x=ties),
        "avg_pool_3d": Case(lambda x: F.avg_pool3d(x, 3, 2, 1, ceil_mode=True,
                                                   count_include_pad=False), x=x),
        "avg_pool_3d_counted": Case(lambda x: F.avg_pool3d(x, (2, 3, 1), (2, 1, 1), (1, 1, 0)), x=x),
        "max_unpool": Case(unpool, x=image(2, 3, 4, 6)),
        "fold": Case(lambda x: F.fold(x, (4, 5), (2, 3), padding=1, stride=(2, 1)),
                     x=image(2, 12, 15)),
        "fold_dilated": Case(lambda x: F.fold(x, (5, 6), 2, dilation=(1, 3)), x=image(1, 8, 12)),
    }


def samples():
    x = image(2, 3, 4, 5)
    # No place is at a kink of a sample, whose slope has two sides there.
    grid = image(2, 3, 4, 2) * 0.71 + 0.013
    def by(mode, padding="zeros", align=False):
        return Case(lambda x, g: F.grid_sample(x, g, mode, padding, align), x=x, g=grid)
    theta = [[[1.0, 0.2, 0.1], [-0.3, 0.8, 0.05]], [[0.5, 0.0, -0.4], [0.1, -1.3, 0.3]]]
    return {
        "grid_bilinear": by("bilinear"),
        "grid_bilinear_border": by("bilinear", "border", True),
        "grid_bilinear_reflection": by("bilinear", "reflection"),
        "grid_bilinear_reflection_corners": by("bilinear", "reflection", True),
        # Its places have no gradient.
        "grid_nearest": Case(lambda x: F.grid_sample(x, grid.to(x.dtype), "nearest",
                                                     align_corners=False), x=x),
        "grid_bicubic": by("bicubic"),
        "grid_bicubic_corners": by("bicubic", align=True),
        "grid_volume": Case(lambda x, g: F.grid_sample(x, g, align_corners=False),
                            x=image(2, 2, 3, 4, 3), g=image(2, 2, 3, 2, 3) * 0.6 + 0.017),
        "affine_grid": Case(lambda x, t: F.grid_sample(x, F.affine_grid(
            t, [2, 3, 3, 6], align_corners=False), align_corners=False), x=x, t=theta),
        "affine_grid_corners": Case(lambda t: F.affine_grid(t, [2, 1, 1, 3], align_corners=True),
                                    t=theta),
    }


def blocks():
    return {
        "pixel_shuffle": Case(lambda x: F.pixel_shuffle(x, 2), x=image(2, 8, 3, 2)),
        "pixel_unshuffle": Case(lambda x: F.pixel_unshuffle(x, 3), x=image(2, 2, 6, 3)),
    }


def main():
    make_cases(sys.argv[1], "images", lambda: {
        "norms": norms(), "transposed convolution": transposed(), "interpolation": interpolations(),
        "pools": pools(), "volumes": volumes(), "samples": samples(), "lp norms": lp_norms(), "blocks": blocks()}, opset=20)


if __name__ == "__main__":
    main()
