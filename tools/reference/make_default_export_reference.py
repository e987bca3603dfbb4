#!/usr/bin/env python3
"""Writes models that PyTorch's exporters change or forget something of, and what PyTorch trains.

    python3 tools/reference/make_default_export_reference.py test/Inputs/exports/default

NAME.onnx is by torch.onnx.export(dynamo=True) as it is by default, in training mode:

    norms      fresh batch normalizations whose ones and zeros it merges: scales, biases and
               statistics, of one layer and of several, with and without scale and bias
    groups     fresh group and instance normalizations, whose scales and biases it folds into
               another shape, merges, and merges with the ones and zeros that it spells them with
    lost       biases of zeros that it leaves out, and two batch normalizations that it folds
    padding    nn.Embedding with padding_idx, whose row is in the data
    recurrent  a first hidden state of zeros, from which it computes a product ahead

NAME.old.onnx and NAME.new.onnx are by tools/export.py, with the old exporter and the new one:

    padding    as above
    buffers    a buffer that is called as a bias
    rotary     positions that it computes as a sum over ones, in all samples
    frozen     a batch normalization that keeps its running statistics beside one that trains
    attention  whose dropout the new one writes in inference form; only the model

NAME.safetensors, NAME.old.safetensors and NAME.new.safetensors have the weights and running statistics after three steps
of SGD in float64, each of two micro-batches, under the names of the file. Needs what
make_export_reference.py needs; the tests need neither.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from safetensors.torch import save_file
from torch import nn

from make_export_reference import MICRO_BATCHES, SIZE, forget_paths, train
from export import _quiet, export, load_trained


def norms():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 16), nn.ReLU(),
                         nn.BatchNorm1d(16), nn.Tanh(), nn.BatchNorm1d(16, affine=False),
                         nn.Linear(16, 5))


def groups():
    return nn.Sequential(nn.Linear(8, 64), nn.Unflatten(1, (4, 16)), nn.GroupNorm(2, 4), nn.Tanh(),
                         nn.Conv1d(4, 4, 1), nn.InstanceNorm1d(4, affine=True), nn.Tanh(),
                         nn.Conv1d(4, 4, 3, padding=1), nn.GroupNorm(4, 4), nn.Tanh(),
                         nn.Conv1d(4, 4, 1), nn.InstanceNorm1d(4), nn.GroupNorm(1, 4), nn.Tanh(),
                         nn.Flatten(), nn.Linear(64, 5))


def frozen():
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Unflatten(1, (4, 4)), nn.BatchNorm1d(4),
                          nn.Flatten(), nn.Linear(16, 5))
    nn.init.uniform_(model[4].running_mean, -1, 1)
    nn.init.uniform_(model[4].running_var, 0.5, 2)
    nn.init.uniform_(model[4].weight, 0.5, 2)
    model[4].eval()
    return model


def lost():
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16),
                          nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 5))
    nn.init.zeros_(model[6].bias)
    nn.init.zeros_(model[8].bias)
    return model


class Padding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 8, padding_idx=1)
        self.place = nn.Embedding(6, 8)
        self.head = nn.Linear(8, 12)

    def forward(self, tokens):
        return self.head(torch.tanh(self.table(tokens) + self.place(torch.arange(6))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 24)
        self.outer = nn.Linear(4, 24)
        self.head = nn.Linear(24, 5)
        self.back = nn.Linear(24, 8)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 8)
        for _ in range(2):
            sum = torch.tanh(self.inner(state) + self.outer(x[:, :4]))
            state = torch.tanh(self.back(sum))
        return self.head(sum)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 5)
        self.register_buffer("final_logits_bias", torch.linspace(-1, 1, 5))

    def forward(self, x):
        return self.fc(x) + self.final_logits_bias


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 8)
        self.head = nn.Linear(8, 12)
        self.register_buffer("rates", torch.tensor([1.0, 0.3, 0.1, 0.03]), persistent=False)

    def forward(self, tokens):
        position = torch.cumsum(torch.ones_like(tokens), 1) - 1
        angle = position[..., None].to(self.rates.dtype) * self.rates
        a, b = self.table(tokens).chunk(2, -1)
        x = torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)
        return self.head(torch.tanh(x))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        query, key, value = (part.unsqueeze(1) for part in self.project(x).chunk(3, -1))
        rate = 0.1 if self.training else 0.0
        return nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=rate).squeeze(1)


class Versioned(nn.Linear):
    """Reads the version of its own in what is loaded, as torchvision's MNASNet does."""
    _version = 2

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if local_metadata.get("version") not in (1, 2):
            raise ValueError(f"version should be 1 or 2 instead of {local_metadata.get('version')}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def write_default(model, inputs, path):
    name = "tokens" if inputs.dtype == torch.int64 else "x"
    with torch.random.fork_rng(), _quiet():
        torch.onnx.export(model.train(), (inputs[:SIZE],), str(path), dynamo=True, input_names=[name],
                          output_names=["output"], external_data=False)
    forget_paths(path)


def expected(model, inputs, targets):
    trained = train(model, inputs, targets)
    return {key: value.float().contiguous().clone() for key, value in trained.state_dict().items()
            if not key.endswith("num_batches_tracked")}


def in_file(weights, path):
    """Under the names of the file: the exporter computed some initializers from one parameter."""
    named = {}
    for value in onnx.load(str(path)).graph.value_info:
        for note in value.metadata_props:
            if note.key.endswith("folded_from"):
                for key in weights:
                    if f"'{key}'" in note.value:
                        named[value.name] = key
    for name, key in named.items():
        weights[name] = weights.pop(key)
        weights[name] = weights[name].t().contiguous() if key == "head.weight" else weights[name]
        if key.startswith("2."):
            weights[name] = weights[name].reshape(4, 1)
    return weights


def write(folder, name, make, inputs, targets, ways):
    np.save(folder / f"{name}.inputs.npy", inputs.numpy())
    np.save(folder / f"{name}.targets.npy", targets.numpy())
    for way in ways:
        torch.manual_seed(7)
        model = make()
        if way == "default":
            write_default(model, inputs, folder / f"{name}.onnx")
            if name in ("norms", "groups", "padding"):
                weights = in_file(expected(model, inputs, targets), folder / f"{name}.onnx")
                if name == "norms":
                    # What stands for the scale and bias that its last norm has not.
                    weights |= {"getitem_10.scale": torch.ones(16), "getitem_10.bias": torch.zeros(16)}
                if name == "groups":
                    # Scales and biases have the shape that they were folded into.
                    for key in ("8.weight", "8.bias", "12.weight", "12.bias"):
                        weights[key] = weights[key].reshape(4, 1)
                save_file(weights, str(folder / f"{name}.safetensors"))
            continue
        names = export(model, inputs[:SIZE], folder / f"{name}.{way}.onnx", exporter=way)
        forget_paths(folder / f"{name}.{way}.onnx")
        Path(f"{folder / name}.{way}.onnx.names.json").unlink()
        weights = expected(model, inputs, targets)
        trained = {place["file"]: (weights[key].t().contiguous() if place.get("transposed")
                                   else weights[key])
                   for key, place in names["tensors"].items() if key in weights}
        # Tables that were computed ahead are in files of weights, too.
        for tensor in onnx.load(str(folder / f"{name}.{way}.onnx")).graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 1:
                trained.setdefault(tensor.name,
                                   torch.tensor(onnx.numpy_helper.to_array(tensor).copy()))
        save_file(trained, str(folder / f"{name}.{way}.safetensors"))


def write_attention(folder):
    model = nn.Sequential(Attention(), Attention(), nn.Linear(8, 5))
    export(model, torch.randn(SIZE, 6, 8), folder / "attention.onnx", exporter="new")
    forget_paths(folder / "attention.onnx")
    Path(f"{folder}/attention.onnx.names.json").unlink()


def check_loading(folder):
    """Trained weights go into modules that look at their version; hostile files are refused."""
    model, path = nn.Sequential(Versioned(3, 2)), folder / "weights.safetensors"
    save_file({"0.weight": torch.ones(2, 3), "0.bias": torch.ones(2)}, str(path))
    load_trained(model, path)
    assert torch.equal(model[0].bias, torch.ones(2))
    for text in ("[" * 100000, "{", "[]", '{"format": "pipewright names 1"}',
                 '{"format": "pipewright names 1", "tensors": {"0.bias": {}}}'):
        names = folder / "names.json"
        names.write_text(text)
        try:
            load_trained(model, path, names)
        except ValueError as error:
            assert str(names) in str(error), error
        else:
            raise AssertionError(f"{text[:40]} was read")
        names.unlink()
    path.unlink()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    count = MICRO_BATCHES * SIZE
    features, classes = torch.randn(count, 8), torch.randint(0, 5, (count,))
    tokens = torch.randint(0, 12, (count, 6))
    tokens[:, 4:] = 1
    words = torch.randint(0, 12, (count, 6))
    write(folder, "norms", norms, features, classes, ["default"])
    write(folder, "groups", groups, features, classes, ["default"])
    write(folder, "lost", lost, features, classes, ["default"])
    write(folder, "recurrent", Recurrent, features, classes, ["default"])
    write(folder, "padding", Padding, tokens, words, ["default", "old"])
    write(folder, "buffers", Buffers, features, classes, ["old"])
    write(folder, "rotary", Rotary, tokens, words, ["new"])
    write(folder, "frozen", frozen, features, classes, ["old", "new"])
    write_attention(folder)
    check_loading(folder)


if __name__ == "__main__":
    main()
