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
SAMPLE = re.compile("|".join([
    "attention_(3d_)?4d(_gqa|_diff_heads_mask4d_padded_kv|_causal|_with_past_and_present)?",
    "attention_[34]d_(gqa|diff_heads_sizes)_(softcap|scaled|attn_mask|causal|with_past_and_present)",
    "attention_4d_.*(qk_matmul_(bias|softmax|softcap)|mask3d_causal|nan|fully|nonpad).*",
    "attention_3d_with_past_and_present",
    "rotary_embedding.*", "rms_normalization_[24]d_axis[01]", "swish.*",
    "(sce|nllloss)_NCd1d2d3_.*", "(sce|nllloss)_.*(sum|none).*weight.*",
    "layer_normalization_[24]d_axis[01]", "batchnorm_example_training_mode",
    "training_dropout_zero_ratio_mask", "dropout_default_mask.*"]))


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
        if not args.sample or SAMPLE.fullmatch(case.name.removeprefix("test_")):
            write(case, args.folder / f"{case.name}.onnx")


if __name__ == "__main__":
    main()
