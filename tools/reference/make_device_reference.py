#!/usr/bin/env python3
"""Writes a model whose nodes have stages, by ONNX's own messages.

    python3 tools/reference/make_device_reference.py test/Inputs/models/devices.onnx

A perceptron of five layers, of which the third is a call of a function and the fourth a Loop of one
iteration: what is within them is in their stage. Configuration `four` has four stages, `two` has
two for two devices and shards a tensor, `back` sends a value to a stage before, and `gap` has no
node in stage 1. Needs onnx 1.18 or newer; the tests do not.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8
STAGES = {
    # node: four, two, back, gap
    "first": (0, 0, 0, 0),
    "act1": (0, 0, 0, 0),
    "second": (1, 0, 2, 0),
    "act2": (1, 0, 1, 0),
    "third": (2, 1, 2, 2),
    "repeat": (3, 1, 3, 3),
}
NAMES = ("four", "two", "back", "gap")
DEVICES = {"two": 2, "four": 4}


def annotate(node):
    for name, stage in zip(NAMES, STAGES.get(node.name, ())):
        note = node.device_configurations.add()
        note.configuration_id = name
        note.pipeline_stage = stage
        if name == "two" and node.name == "first":
            spec = note.sharding_spec.add()
            spec.tensor_name = "w1"
            spec.device.extend([0, 1])
            dim = spec.sharded_dim.add()
            dim.axis = 1
            simple = dim.simple_sharding.add()
            simple.dim_value = WIDTH
            simple.num_shards = 2
    return node


def info(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weights():
    random = np.random.default_rng(11)
    for i in range(1, 6):
        yield numpy_helper.from_array((random.standard_normal((WIDTH, WIDTH)) / 3).astype(np.float32), f"w{i}")
    yield numpy_helper.from_array(np.array(1, np.int64), "once")
    yield numpy_helper.from_array(np.array(True), "yes")


def main():
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "w4"], ["m"], name="product"),
            helper.make_node("Tanh", ["m"], ["next"], name="act"),
            helper.make_node("Identity", ["go"], ["goes"], name="same"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            info("h", ["N", WIDTH]),
        ],
        [helper.make_tensor_value_info("goes", TensorProto.BOOL, []), info("next", ["N", WIDTH])],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="act1"),
        helper.make_node("MatMul", ["b", "w2"], ["c"], name="second"),
        helper.make_node("Relu", ["c"], ["d"], name="act2"),
        helper.make_node("Layer", ["d", "w3"], ["e"], name="third", domain="local"),
        helper.make_node("Loop", ["once", "yes", "e"], ["f"], name="repeat", body=body),
        # Without a stage: where what it reads is.
        helper.make_node("MatMul", ["f", "w5"], ["logits"], name="fifth"),
    ]
    layer = helper.make_function(
        "local",
        "Layer",
        ["v", "w"],
        ["y"],
        [
            helper.make_node("MatMul", ["v", "w"], ["p"], name="product"),
            helper.make_node("Tanh", ["p"], ["y"], name="act"),
        ],
        [helper.make_opsetid("", 17)],
    )
    graph = helper.make_graph(
        [annotate(node) for node in nodes],
        "devices",
        [info("x", ["N", WIDTH])],
        [info("logits", ["N", WIDTH])],
        list(weights()),
    )
    model = helper.make_model(
        graph,
        functions=[layer],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
        ir_version=11,
    )
    for name in NAMES:
        configuration = model.configuration.add()
        configuration.name = name
        if name in DEVICES:
            configuration.num_devices = DEVICES[name]
            configuration.device.extend(f"gpu{i}" for i in range(DEVICES[name]))
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
