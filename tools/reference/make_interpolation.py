#!/usr/bin/env python3
"""Writes weights of interpolations as ONNX's reference evaluator and PyTorch have them.

    python3 tools/reference/make_interpolation.py test/Inputs/reference/interpolation.json

Each case goes from one size to another along one dimension. Its weights are what an identity matrix
becomes: a row for each element of the result, or for mode nearest the element that it is. Where
PyTorch has the same mode, both must agree. Needs onnx 1.23, NumPy and PyTorch; the tests do not.
"""

import itertools
import json
import sys

import numpy as np
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from torch.nn import functional as F

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SIZES = [(5, 8, None), (8, 3, None), (2, 2, None), (1, 4, None), (7, 1, None), (5, 7, 1.5), (6, 3, 0.6)]


def is_unclear(case):
    """The evaluator's coordinate is -1/2 where the operator's text has 0."""
    return (case["coordinates"] == "pytorch_half_pixel" and case["to"] == 1
            and (case["mode"] == "cubic" or case["antialias"]))


def by_onnx(case):
    size, scale = case["from"], case["scale"]
    inputs = ["x", "", "s"] if scale else ["x", "", "", "s"]
    attributes = {"mode": case["mode"], "axes": [1],
                  "coordinate_transformation_mode": case["coordinates"]}
    if case["mode"] == "nearest":
        attributes["nearest_mode"] = case["rounding"]
    else:
        attributes |= {"antialias": case["antialias"], "exclude_outside": case["exclude"],
                       "cubic_coeff_a": case["cubic"]}
    kind = TensorProto.FLOAT if scale else TensorProto.INT64
    graph = helper.make_graph(
        [helper.make_node("Resize", inputs, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [size, size]),
         helper.make_tensor_value_info("s", kind, [1])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    given = np.array([scale], np.float32) if scale else np.array([case["to"]])
    y = ReferenceEvaluator(model).run(None, {"x": np.eye(size), "s": given})[0]
    return y.T


def by_pytorch(case):
    """The same by PyTorch; None where it has no such mode."""
    corners = case["coordinates"] == "align_corners"
    mode = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[case["mode"]]
    coordinates = ["half_pixel", "align_corners"]
    if case["mode"] == "nearest":
        coordinates = ["asymmetric"] if case["rounding"] == "floor" else []
    if (case["coordinates"] not in coordinates or case["scale"]
            or case["exclude"] != case["antialias"] or (case["antialias"] and corners)
            or (case["mode"] == "cubic" and case["cubic"] != (-0.5 if case["antialias"] else -0.75))):
        return None
    x = torch.eye(case["from"], dtype=torch.float64)[None, None]
    options = {} if case["mode"] == "nearest" else {"align_corners": corners,
                                                   "antialias": bool(case["antialias"])}
    return F.interpolate(x, size=(case["from"], case["to"]), mode=mode, **options)[0, 0].numpy().T


def cases():
    for (start, end, scale), coordinates in itertools.product(SIZES, COORDINATES):
        base = {"from": start, "to": end, "scale": scale, "coordinates": coordinates}
        for rounding in ROUNDINGS:
            yield base | {"mode": "nearest", "rounding": rounding, "exclude": 0, "antialias": 0}
        for mode, exclude, antialias in itertools.product(["linear", "cubic"], [0, 1], [0, 1]):
            case = base | {"mode": mode, "exclude": exclude, "antialias": antialias,
                           "cubic": -0.5 if antialias else -0.75}
            if not is_unclear(case):
                yield case


def main():
    found, checked = [], 0
    for case in cases():
        weights = by_onnx(case)
        assert weights.shape == (case["to"], case["from"]), case
        other = by_pytorch(case)
        if other is not None:
            assert np.allclose(weights, other, atol=1e-6), (case, weights, other)
            checked += 1
        if case["mode"] == "nearest":
            assert (weights.max(1) == 1).all() and (weights.sum(1) == 1).all()
            case["columns"] = weights.argmax(1).tolist()
        else:
            case["weights"] = [round(float(w), 6) for w in weights.reshape(-1)]
        found.append({key: value for key, value in case.items() if value is not None})
    with open(sys.argv[1], "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in found) + "\n]\n")
    print(f"{len(found)} cases, {checked} of them as PyTorch has them")


if __name__ == "__main__":
    main()
