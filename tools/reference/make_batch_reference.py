#!/usr/bin/env python3
"""Writes models with the batch inside of other dimensions, and what PyTorch trains of them.

    python3 tools/reference/make_batch_reference.py test/Inputs/exports/batch

Both are by torch.onnx.export as it is, in training mode, at another batch size than they are trained
with; NAME.N.onnx is of N samples:

    encoder  nn.TransformerEncoder by the older exporter, of 1 and 2 samples: its attention computes
             with [steps, samples * heads, width] and [steps * samples, width]
    tokens   by the newer one, of 2: a token before the others, positions and kinds, each of which it
             computes ahead for all samples

NAME.inputs.npy and NAME.targets.npy have the data, NAME.safetensors the weights after three steps of
SGD in float64, each of two micro-batches of four samples, without dropout, under the names that
Pipewright gives them. Needs what make_export_reference.py needs; the tests need neither.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import nn

from make_export_reference import MICRO_BATCHES, SIZE, forget_paths, train
from export import _quiet

WIDTH, STEPS, CLASSES = 8, 6, 5


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.words, self.places = nn.Embedding(12, WIDTH), nn.Embedding(STEPS + 1, WIDTH)
        self.kinds = nn.Embedding(2, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)
        for parameter in self.layer.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5)

    def forward(self, tokens):
        samples = tokens.shape[0]
        x = torch.cat([self.first.expand(samples, -1, -1), self.words(tokens)], 1)
        places = torch.arange(STEPS + 1).expand(samples, -1)
        return self.head(self.layer(x + self.places(places) + self.kinds(torch.zeros_like(places)))[:, 0])


def lookup_of(key, model):
    """The initializer that has rows of a table, looked up at export."""
    for value in model.graph.value_info:
        if value.name.startswith("embedding") and any(f"'{key}'" in note.value for note in value.metadata_props):
            return value.name
    return None


def in_file(weights, start, path):
    """Weights as the program has them: those of products are transposed, and rows of tables that were looked up at
    export are weights of their own. `start` has the values that the file was written with."""
    model = onnx.load(str(path))
    tensors = {t.name: torch.tensor(numpy_helper.to_array(t).copy()) for t in model.graph.initializer}
    named = {}
    for key, value in weights.items():
        copies = [name for name, t in tensors.items() if value.dim() == 2 and torch.equal(t, start[key].t())]
        rows = lookup_of(key, model)
        if key not in tensors and copies:
            named[copies[0]] = value.t().contiguous()
        elif key not in tensors and rows:
            named[rows] = value[None] if key == "places.weight" else value[None, :1].contiguous()
        else:
            named[key] = value
    return named


def write(folder, name, model, inputs, targets, sizes, dynamo):
    np.save(folder / f"{name}.inputs.npy", inputs.numpy())
    np.save(folder / f"{name}.targets.npy", targets.numpy())
    options = {"external_data": False} if dynamo else {"training": torch.onnx.TrainingMode.TRAINING}
    start = {key: value.clone() for key, value in model.state_dict().items()}
    for size in sizes:
        path = folder / f"{name}.{size}.onnx"
        with torch.random.fork_rng(), _quiet():
            torch.onnx.export(model.train(), (inputs[:size],), str(path), dynamo=dynamo, input_names=["x"],
                              output_names=["output"], **options)
        forget_paths(path)
    trained = train(model, inputs, targets)
    weights = {key: value.float().contiguous().clone() for key, value in trained.state_dict().items()}
    save_file(in_file(weights, start, path), str(folder / f"{name}.safetensors"))


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(11)
    count = MICRO_BATCHES * SIZE
    classes = torch.randint(0, CLASSES, (count,))
    write(folder, "encoder", Encoder(), torch.randn(count, STEPS, WIDTH), classes, (1, 2), dynamo=False)
    write(folder, "tokens", Tokens(), torch.randint(0, 12, (count, STEPS)), classes, (2,), dynamo=True)


if __name__ == "__main__":
    main()
