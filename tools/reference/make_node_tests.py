#!/usr/bin/env python3
"""Writes the ONNX package's node tests, each as one file: FOLDER/NAME.onnx.

    python3 tools/reference/make_node_tests.py /tmp/node-tests
    PIPEWRIGHT_NODE_TESTS=/tmp/node-tests build/test/unit/onnx/OnnxFrontendTests \\
        --gtest_filter='OnnxNodeTests.*'
    python3 tools/reference/make_node_tests.py /tmp/node-tests --expanded
    python3 tools/reference/make_node_tests.py test/Inputs/node-tests --sample

A file is the test's model; the values of its inputs and the outputs that ONNX expects of them are
initializers under their names. Sequences and optionals among them are made of tensors and taken
apart within the model. Left out is what has no float32 or more than one node, and types that are
never imported. With --expanded it is the tests that spell the function of an operator out instead,
also those of other floats, which are rounded to float32. --sample takes a few of both, of ops that
Debian's package is too old for. Needs onnx 1.23; the tests do not.
"""

import argparse
import pathlib
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

TYPES = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
         TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT16, TensorProto.UINT32,
         TensorProto.UINT64, TensorProto.INT16}
# Also types that become float32 on import.
ROUNDED_TYPES = TYPES | {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE,
                         TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
                         TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ}
RANDOM = re.compile("Bernoulli|Random|Multinomial")
INTEGER = re.compile("Quantize|Bit|ConvInteger|MatMulInteger|QLinear")
SAMPLE = re.compile("attention_(3d|4d|23|24|local|bidirectional).*|rotary_embedding.*|swish|"
                    "rms_normalization_[24]d_axis[01]|layer_normalization_[24]d_axis[01]|"
                    "(causal_conv_with_state|linear_attention|tensorscatter|col2im|affine_grid)_?.*|"
                    "(scatternd_m|scatter_elements_with_reduction|mod_float).*|dft_irfft.*|"
                    "gridsample_volumetric.*|resize_tf_crop.*|pow_types_int.*_float32|"
                    "(sce|nllloss)_.*|batchnorm_example_training_mode|dropout_default_mask.*|"
                    "(if|loop|scan9)[_0-9].*|if|loop11|(sequence|optional)_.*|split_to_sequence.*")
SAMPLE_EXPANDED = re.compile("castlike_(no_saturate_)?FLOAT(16)?_to_FLOAT8.*|castlike_FLOAT8.*|"
                             "rotary_embedding_(no_position_ids_)?expanded|"
                             "causal_conv_with_state_kernel_size_one_expanded|swiglu_expanded|center_crop_pad_crop_expanded")
# Bytes of a file of the sample, but of a cache with a mask: its columns are many.
SAMPLE_LIMIT = 4000
SAMPLE_LARGE = re.compile("attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal|"
                          "attention_3d_gqa_(softcap|with_past_and_present)")


def tensors_in(value):
    """The tensors of a value of a test: of a tensor, a sequence or an optional."""
    return [t for t in (value if isinstance(value, list) else [value]) if t is not None]


def element_type(tensor):
    if isinstance(tensor, TensorProto):
        return tensor.data_type
    try:
        return helper.np_dtype_to_tensor_dtype(np.asarray(tensor).dtype)
    except KeyError:
        return TensorProto.STRING


def is_wanted(case, expanded):
    nodes = case.model.graph.node
    inputs, outputs = case.data_sets[0]
    types = {element_type(t) for value in (*inputs, *outputs) for t in tensors_in(value)}
    if expanded:
        return "_expanded" in case.name and types <= ROUNDED_TYPES
    if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx") or "_expanded" in case.name:
        return False
    if RANDOM.search(nodes[0].op_type) or INTEGER.search(nodes[0].op_type):
        return False
    return TensorProto.FLOAT in types and types <= TYPES


def use_tensors(case):
    """Makes sequences and optionals of tensors before the node, and takes them apart behind it."""
    graph = case.model.graph
    before, behind = [], []

    def make_ports(port, value):
        if port.type.HasField("tensor_type"):
            return [(port, value)]
        tensors = [np.asarray(t) for t in tensors_in(value)]
        return [(helper.make_tensor_value_info(f"{port.name}_{i}", element_type(t), t.shape), t)
                for i, t in enumerate(tensors)]

    def make_value(port, value, names):
        if not isinstance(value, list):
            kind = {} if names else {"type": port.type.optional_type.elem_type}
            return helper.make_node("Optional", names, [port.name], **kind)
        return helper.make_node("SequenceConstruct" if names else "SequenceEmpty", names, [port.name])

    inputs, outputs = [], []
    for port, value in zip(graph.input, case.data_sets[0][0], strict=True):
        ports = make_ports(port, value)
        inputs += ports
        if not port.type.HasField("tensor_type"):
            before.append(make_value(port, value, [p.name for p, _ in ports]))
    for port, value in zip(graph.output, case.data_sets[0][1], strict=True):
        ports = make_ports(port, value)
        outputs += ports
        for i, (part, _) in enumerate(ports if isinstance(value, list) else []):
            behind.append(helper.make_node("Constant", [], [f"{part.name}_at"], value_int=i))
            behind.append(helper.make_node("SequenceAt", [port.name, f"{part.name}_at"], [part.name]))
    if any(node.op_type == "Optional" for node in before):
        for opset in case.model.opset_import:
            opset.version = max(opset.version, 15)
    nodes = [*before, *graph.node, *behind]
    graph.CopyFrom(helper.make_graph(nodes, graph.name, [p for p, _ in inputs], [p for p, _ in outputs]))
    case.data_sets[0] = ([v for _, v in inputs], [v for _, v in outputs])


def is_in_sample(case):
    name = case.name.removeprefix("test_")
    if "_expanded" in name:
        return SAMPLE_EXPANDED.fullmatch(name)
    small = sum(np.asarray(t).nbytes for data in case.data_sets[0] for v in data for t in tensors_in(v))
    return bool(SAMPLE.fullmatch(name) and small <= SAMPLE_LIMIT or SAMPLE_LARGE.fullmatch(name))


def write(case, path):
    use_tensors(case)
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
    parser.add_argument("--expanded", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for case in collect_testcases(None):
        wanted = is_wanted(case, args.expanded) or (args.sample and is_wanted(case, True))
        if wanted and (not args.sample or is_in_sample(case)):
            write(case, args.folder / f"{case.name}.onnx")


if __name__ == "__main__":
    main()
