"""Runs an ONNX graph with PyTorch's own operators, so that autograd gives the
gradients that Pipewright is compared with. Dropout is the identity: its random
numbers are not comparable between programs."""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


class Graph:
    """An ONNX model as a callable; `parameters` maps names to leaf tensors."""

    def __init__(self, path, dtype):
        self.model = onnx.load(path)
        self.dtype = dtype
        self.parameters = {}
        self.constants = {}
        statistics = set()
        for node in self.model.graph.node:
            if node.op_type == "BatchNormalization":
                statistics.update(node.input[3:5])
        for initializer in self.model.graph.initializer:
            value = torch.from_numpy(numpy_helper.to_array(initializer).copy())
            if value.is_floating_point() and initializer.name not in statistics:
                value = value.to(dtype).requires_grad_()
                self.parameters[initializer.name] = value
            elif value.is_floating_point():
                self.constants[initializer.name] = value.to(dtype)
            else:
                self.constants[initializer.name] = value
        # Evaluation-mode exports read equal initializers through Identity;
        # each reader gets a parameter of its own, as on import.
        for node in self.model.graph.node:
            if node.op_type == "Identity" and node.input[0] in self.parameters:
                copy = self.parameters[node.input[0]].detach().clone()
                self.parameters[node.output[0]] = copy.requires_grad_()
        names = {i.name for i in self.model.graph.initializer}
        self.inputs = [v.name for v in self.model.graph.input if v.name not in names]
        self.outputs = [v.name for v in self.model.graph.output]

    def __call__(self, *inputs):
        values = dict(self.constants)
        values.update(self.parameters)
        values[""] = None
        for name, value in zip(self.inputs, inputs):
            values[name] = value.to(self.dtype) if value.is_floating_point() else value
        for node in self.model.graph.node:
            if node.op_type == "Identity" and node.output[0] in self.parameters:
                continue
            attributes = {
                a.name: onnx.helper.get_attribute_value(a) for a in node.attribute
            }
            arguments = [values[name] for name in node.input]
            results = getattr(self, "op_" + node.op_type)(arguments, attributes, node)
            if not isinstance(results, (tuple, list)):
                results = (results,)
            for name, value in zip(node.output, results):
                values[name] = value
        return [values[name] for name in self.outputs]

    def op_Constant(self, x, a, node):
        value = torch.from_numpy(numpy_helper.to_array(a["value"]).copy())
        return value.to(self.dtype) if value.is_floating_point() else value

    def op_Identity(self, x, a, node):
        return x[0]

    def op_Dropout(self, x, a, node):
        return x[0]

    def op_Add(self, x, a, node):
        return x[0] + x[1]

    def op_Sub(self, x, a, node):
        return x[0] - x[1]

    def op_Mul(self, x, a, node):
        return x[0] * x[1]

    def op_Div(self, x, a, node):
        if not x[0].is_floating_point():
            return torch.div(x[0], x[1], rounding_mode="trunc")
        return x[0] / x[1]

    def op_Pow(self, x, a, node):
        return torch.pow(x[0], x[1])

    def op_Sqrt(self, x, a, node):
        return torch.sqrt(x[0])

    def op_Erf(self, x, a, node):
        return torch.erf(x[0])

    def op_Tanh(self, x, a, node):
        return torch.tanh(x[0])

    def op_Relu(self, x, a, node):
        return F.relu(x[0])

    def op_Not(self, x, a, node):
        return torch.logical_not(x[0])

    def op_Where(self, x, a, node):
        return torch.where(x[0], x[1], x[2])

    def op_Cast(self, x, a, node):
        kinds = {1: self.dtype, 6: torch.int32, 7: torch.int64, 9: torch.bool}
        return x[0].to(kinds[a["to"]])

    def op_Softmax(self, x, a, node):
        return F.softmax(x[0], dim=a.get("axis", -1))

    def op_ReduceMean(self, x, a, node):
        return x[0].mean(dim=tuple(a["axes"]), keepdim=bool(a.get("keepdims", 1)))

    def op_MatMul(self, x, a, node):
        return torch.matmul(x[0], x[1])

    def op_Gemm(self, x, a, node):
        left = x[0].T if a.get("transA", 0) else x[0]
        right = x[1].T if a.get("transB", 0) else x[1]
        product = a.get("alpha", 1.0) * (left @ right)
        return product + a.get("beta", 1.0) * x[2] if len(x) > 2 else product

    def op_Conv(self, x, a, node):
        pads = a.get("pads", [0, 0, 0, 0])
        padded = F.pad(x[0], (pads[1], pads[3], pads[0], pads[2]))
        return F.conv2d(
            padded, x[1], x[2] if len(x) > 2 else None, tuple(a.get("strides", [1, 1])),
            0, tuple(a.get("dilations", [1, 1])), a.get("group", 1))

    def op_MaxPool(self, x, a, node):
        pads = a.get("pads", [0, 0, 0, 0])
        padded = F.pad(x[0], (pads[1], pads[3], pads[0], pads[2]), value=-float("inf"))
        return F.max_pool2d(padded, tuple(a["kernel_shape"]), tuple(a["strides"]))

    def op_GlobalAveragePool(self, x, a, node):
        return x[0].mean(dim=(2, 3), keepdim=True)

    def op_BatchNormalization(self, x, a, node):
        return F.batch_norm(
            x[0], None, None, x[1], x[2], True, 0.0, a.get("epsilon", 1e-5))

    def op_LayerNormalization(self, x, a, node):
        return F.layer_norm(
            x[0], (x[0].shape[-1],), x[1], x[2], a.get("epsilon", 1e-5))

    def op_Flatten(self, x, a, node):
        axis = a.get("axis", 1)
        return x[0].reshape(int(np.prod(x[0].shape[:axis])), -1)

    def op_Reshape(self, x, a, node):
        shape = [x[0].shape[i] if d == 0 else d for i, d in enumerate(x[1].tolist())]
        return x[0].reshape(shape)

    def op_Transpose(self, x, a, node):
        return x[0].permute(a["perm"])

    def op_Unsqueeze(self, x, a, node):
        axes = a["axes"] if "axes" in a else x[1].tolist()
        for axis in sorted(axes):
            x[0] = x[0].unsqueeze(axis)
        return x[0]

    def op_Concat(self, x, a, node):
        return torch.cat(x, dim=a["axis"])

    def op_Split(self, x, a, node):
        sizes = x[1].tolist() if len(x) > 1 else a["split"]
        return torch.split(x[0], sizes, dim=a.get("axis", 0))

    def op_Slice(self, x, a, node):
        starts, ends = x[1].tolist(), x[2].tolist()
        axes = x[3].tolist() if len(x) > 3 else range(len(starts))
        steps = x[4].tolist() if len(x) > 4 else [1] * len(starts)
        index = [slice(None)] * x[0].dim()
        for start, end, axis, step in zip(starts, ends, axes, steps):
            index[axis] = slice(start, min(end, x[0].shape[axis]), step)
        return x[0][tuple(index)]

    def op_Gather(self, x, a, node):
        axis, table, indices = a.get("axis", 0), x[0], x[1]
        if indices.dim() == 0:
            return table.select(axis, int(indices))
        if axis == 0 and table.dim() == 2:
            return F.embedding(indices, table)
        flat = table.index_select(axis, indices.reshape(-1))
        return flat.reshape(
            table.shape[:axis] + indices.shape + table.shape[axis + 1 :])

    def op_Shape(self, x, a, node):
        return torch.tensor(x[0].shape, dtype=torch.int64)

    def op_Range(self, x, a, node):
        return torch.arange(int(x[0]), int(x[1]), int(x[2]))

    def op_SoftmaxCrossEntropyLoss(self, x, a, node):
        return F.cross_entropy(x[0], x[1], ignore_index=a.get("ignore_index", -100))
