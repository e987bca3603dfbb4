#!/usr/bin/env python3
"""Writes small networks by both exporters, and what PyTorch trains of them.

    python3 tools/reference/make_export_reference.py test/Inputs/exports

The network has batch normalization and residuals, the decoder dropout, attention, torch.split and
a tied weight, the segmentation group and instance normalization, transposed convolutions and
interpolation. The recurrent one has an LSTM and a GRU, Einsum and sines, the windows what Swin has.
tools/export.py writes each of them with its map of names; PLAIN.onnx is the network as
torch.onnx.export writes it by default, without batch normalization. MODEL.EXPORTER.safetensors has
the weights after three steps of SGD in float64, each of two micro-batches of four samples, without
dropout, under the names of the file. Of the network, the decoder and the windows, MODEL.saved.onnx is what
save_onnx makes of these weights, and MODEL.saved.npy its output by ONNX's reference evaluator. Needs PyTorch, its exporters, NumPy and safetensors; the tests
do not.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from export import export, load_trained, save_onnx  # noqa: E402

STEPS, RATE, MICRO_BATCHES, SIZE = 3, 0.1, 2, 4


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.bn = nn.BatchNorm2d(6)
        self.blocks = nn.Sequential(Residual(6), Residual(6))
        self.head = nn.Linear(6, 10)

    def forward(self, image):
        x = self.blocks(F.relu(self.bn(self.stem(image))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.qkv(self.ln1(x)).split(width, dim=2)
        q, k, v = (y.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for y in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(batch, time, width)))
        return x + self.drop(self.fc2(F.gelu(self.fc1(self.ln2(x)))))


class Decoder(nn.Module):
    def __init__(self, vocabulary=48, width=16, positions=8):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList(Block(width, 2) for _ in range(2))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.2)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.drop(x)
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class Up(nn.Module):
    """Twice the size, and what the way down has left beside it."""

    def __init__(self, channels, skipped, out):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, out, 3, stride=2, padding=1, output_padding=1)
        self.conv = nn.Conv2d(out + skipped, out, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, out)

    def forward(self, x, skip):
        return F.silu(self.norm(self.conv(torch.cat([self.up(x), skip], 1))))


class Segmentation(nn.Module):
    """A U-Net of two levels; coarse results are interpolated and added."""

    def __init__(self, classes=5):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, 4)
        self.down = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        # As many groups as channels, and ones and zeros as scale and bias.
        self.norm2 = nn.GroupNorm(8, 8)
        self.bottom = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.norm3 = nn.InstanceNorm2d(12, affine=True)
        self.up2 = Up(12, 8, 8)
        self.up1 = Up(8, 4, 4)
        self.head = nn.Conv2d(4, classes, 1)
        self.coarse = nn.Conv2d(12, classes, 1)
        self.middle = nn.ConvTranspose2d(8, classes, 2, stride=2)
        self.plain = nn.InstanceNorm2d(classes)

    def forward(self, image):
        first = F.silu(self.norm1(self.first(image)))
        second = F.relu(self.norm2(self.down(first)))
        third = F.relu(self.norm3(self.bottom(second)))
        up = self.up2(third, second)
        y = self.head(self.up1(up, first)) + self.plain(self.middle(up))
        y = y + F.interpolate(self.coarse(third), size=y.shape[2:], mode="bilinear")
        y = y + F.interpolate(self.coarse(third), scale_factor=4.0, mode="nearest")
        return y.permute(0, 2, 3, 1).flatten(1, 2)


class Recurrent(nn.Module):
    """Both directions of an LSTM, a GRU, and a gate by Einsum; sines of what was computed."""

    def __init__(self, vocabulary=20, width=6):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, 4, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(8, 6, batch_first=True)
        self.gate = nn.Parameter(torch.randn(2, 6, 6) * 0.3)
        self.register_buffer("frequencies", torch.tensor([1.0, 10.0, 100.0]))
        self.head = nn.Linear(12, vocabulary)

    def forward(self, tokens):
        x = self.gru(self.lstm(self.words(tokens))[0])[0]
        gated = torch.einsum("btd,hde->bthe", x, self.gate).prod(2).cumsum(1)
        angles = x.mean(2, keepdim=True) * self.frequencies
        return self.head(torch.cat([gated, angles.sin(), angles.cos()], 2))


class Windows(nn.Module):
    """What Swin has: shifted windows, a table of biases, merged patches, and dropout in place; and a
    parameter that does not train."""

    def __init__(self, width=8, classes=6):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 2, stride=2)
        self.norm = nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn(9, 2))
        place = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
        between = (place[:, :, None] - place[:, None, :]).permute(1, 2, 0) + 1
        self.register_buffer("places", between[..., 0] * 3 + between[..., 1])
        mask = torch.zeros(4, 4)
        mask[:2, 2:] = -100.0
        self.register_buffer("mask", mask)
        self.drop = nn.Dropout(0.1, inplace=True)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, width), requires_grad=False)
        self.merge = nn.Linear(4 * width, 2 * width, bias=False)
        self.head = nn.Linear(2 * width, classes)

    def attend(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, time, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        bias = self.table[self.places.view(-1)].view(time, time, -1).permute(2, 0, 1)
        scores = q @ k.transpose(2, 3) * 0.5 + bias + self.mask
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width))

    def forward(self, image):
        x = self.embed(image).permute(0, 2, 3, 1)
        batch, height, across, width = x.shape
        shifted = torch.roll(self.norm(x), (-1, -1), (1, 2))
        windows = shifted.view(batch, height // 2, 2, across // 2, 2, width).permute(0, 1, 3, 2, 4, 5)
        y = self.attend(windows.reshape(-1, 4, width))
        y = y.view(batch, height // 2, across // 2, 2, 2, width).permute(0, 1, 3, 2, 4, 5)
        x = x + self.drop(torch.roll(y.reshape(batch, height, across, width), (1, 1), (1, 2))) * self.scale
        parts = [x[:, i::2, j::2] for i in range(2) for j in range(2)]
        return self.head(self.merge(torch.cat(parts, -1)).mean((1, 2)))


def train(model, inputs, targets):
    """Three steps of SGD in float64, without dropout."""
    model.double()
    if not model.training:
        model.train()
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    for _ in range(STEPS):
        model.zero_grad()
        for x, y in zip(inputs.split(SIZE), targets.split(SIZE)):
            x = x.double() if x.is_floating_point() else x
            logits = model(x)
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
            (loss / MICRO_BATCHES).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter -= RATE * parameter.grad
    return model


def forget_paths(path):
    """Takes out the notes of where in which file the model was written."""
    model = onnx.load(str(path))
    for node in model.graph.node:
        kept = [(p.key, p.value) for p in node.metadata_props if not p.key.endswith("stack_trace")]
        del node.metadata_props[:]
        for key, value in kept:
            node.metadata_props.add(key=key, value=value)
        node.doc_string = ""
    onnx.save(model, str(path))


def write(folder, name, make, inputs, targets, input_name):
    torch.manual_seed(7)
    model = make()
    initial = {key: value.clone() for key, value in model.state_dict().items()}
    np.save(folder / f"{name}.{input_name}.npy", inputs.numpy())
    np.save(folder / f"{name}.targets.npy", targets.numpy())
    maps = {way: export(model, inputs[:SIZE], folder / f"{name}.{way}.onnx", exporter=way)
            for way in ("new", "old")}
    if name == "network":
        torch.onnx.export(model, (inputs[:SIZE],), str(folder / "plain.onnx"), dynamo=True,
                          input_names=["image"], output_names=["output"], external_data=False)
    trained = train(model, inputs, targets)
    expected = {key: value.float() if value.is_floating_point() else value
                for key, value in trained.state_dict().items()}
    for way, names in maps.items():
        weights = {}
        for key, place in names["tensors"].items():
            # Programs keep numbers that nobody trains to themselves.
            if not expected[key].is_floating_point():
                continue
            value = expected[key].t() if place.get("transposed") else expected[key]
            weights[place["file"]] = value.contiguous().clone()
        file = folder / f"{name}.{way}.safetensors"
        save_file(weights, str(file))
        # What goes out comes back: strict, under all names, whatever it was before.
        twin = make()
        twin.load_state_dict(initial)
        kept = load_trained(twin, file, folder / f"{name}.{way}.onnx.names.json")
        for key, value in twin.state_dict().items():
            assert key in kept or torch.equal(value, expected[key]), key
        assert not any(initial[key].is_floating_point() for key in kept), kept


def write_saved(folder, name, exporter, input_name):
    path, model = folder / f"{name}.saved.onnx", folder / f"{name}.{exporter}.onnx"
    save_onnx(model, model.with_suffix(".safetensors"), path)
    inputs = {input_name: np.load(folder / f"{name}.{input_name}.npy")}
    output, = ReferenceEvaluator(str(path)).run(None, inputs)
    np.save(folder / f"{name}.saved.npy", output)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    count = MICRO_BATCHES * SIZE
    write(folder, "network", Network, torch.randn(count, 3, 8, 8), torch.randint(0, 10, (count,)), "image")
    write(folder, "decoder", Decoder, torch.randint(0, 48, (count, 8)), torch.randint(0, 48, (count, 8)),
          "tokens")
    write(folder, "segmentation", Segmentation, torch.randn(count, 3, 8, 12),
          torch.randint(0, 5, (count, 96)), "image")
    write(folder, "recurrent", Recurrent, torch.randint(0, 20, (count, 5)),
          torch.randint(0, 20, (count, 5)), "tokens")
    write(folder, "windows", Windows, torch.randn(count, 3, 8, 8), torch.randint(0, 6, (count,)), "image")
    write_saved(folder, "network", "old", "image")
    write_saved(folder, "decoder", "old", "tokens")
    write_saved(folder, "windows", "new", "image")
    for file in folder.glob("*.onnx"):
        forget_paths(file)


if __name__ == "__main__":
    main()
