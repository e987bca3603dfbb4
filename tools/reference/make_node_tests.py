#!/usr/bin/env python3
"""Writes the ONNX package's node tests, each as one file: FOLDER/NAME.onnx.

    python3 tools/reference/make_node_tests.py /tmp/node-tests
    PIPEWRIGHT_NODE_TESTS=/tmp/node-tests build/test/unit/onnx/OnnxFrontendTests \\
        --gtest_filter='OnnxNodeTests.*'
    python3 tools/reference/make_node_tests.py test/Inputs/node-tests --sample

A file is the test's model; the values of its inputs and the outputs that ONNX expects of them are
initializers under their names. Left out is what has no float32 or more than one node, and types
that are never imported. --sample takes a few tests of ops that Debian's package is too old for.
Needs onnx 1.23; the tests do not.
"""

import argparse
import pathlib
import re

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

TYPES = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
         TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT16, TensorProto.UINT32,
         TensorProto.UINT64, TensorProto.INT16}
RANDOM = re.compile("Bernoulli|Random|Multinomial")
INTEGER = re.compile("Quantize|Bit|ConvInteger|MatMulInteger|QLinear")
SAMPLE = re.compile("attention_(3d|4d|23|24|local|bidirectional).*|rotary_embedding.*|swish|"
                    "rms_normalization_[24]d_axis[01]|layer_normalization_[24]d_axis[01]|"
                    "(sce|nllloss)_.*|batchnorm_example_training_mode|dropout_default_mask.*")
# Bytes of a file of the sample, but of a cache with a mask: its columns are many.
SAMPLE_LIMIT = 4000
SAMPLE_LARGE = re.compile("attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal|"
                          "attention_3d_gqa_(softcap|with_past_and_present)")


def is_wanted(case):
    nodes = case.model.graph.node
    if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx"):
        return False
    if RANDOM.search(nodes[0].op_type) or INTEGER.search(nodes[0].op_type):
        return False
    values = [*case.model.graph.input, *case.model.graph.output]
    if not all(v.type.HasField("tensor_type") for v in values):
        return False
    types = {v.type.tensor_type.elem_type for v in values}
    return TensorProto.FLOAT in types and types <= TYPES


def is_in_sample(case):
    name = case.name.removeprefix("test_")
    small = sum(data.nbytes for data in (*case.data_sets[0][0], *case.data_sets[0][1]))
    return bool(SAMPLE.fullmatch(name) and small <= SAMPLE_LIMIT or SAMPLE_LARGE.fullmatch(name))


def write(case, path):
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    assert not graph.initializer
    for value, data in zip([*graph.input, *graph.output], [*inputs, *outputs], strict=True):
        if not isinstance(data, TensorProto):
            data = numpy_helper.from_array(data)
        data.name = value.name
        graph.initializer.append(data)
    path.write_bytes(case.model.SerializeToString(deterministic=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for case in filter(is_wanted, collect_testcases(None)):
        if not args.sample or is_in_sample(case):
            write(case, args.folder / f"{case.name}.onnx")


if __name__ == "__main__":
    main()
