#!/usr/bin/env python3
"""Exports the models of the demo and the benchmarks with PyTorch.

    /usr/bin/python3 tools/reference/export_models.py byte-gpt OUT.onnx

byte-gpt: 4 layers, width 128, 4 heads, 128 positions, 256 tokens: the demo.
gpt-s:    4 layers, width 256, 4 heads, 128 positions, 8192 tokens: the benchmark.
gpt2:     12 layers, width 768, 12 heads, 128 positions, 50257 tokens: GPT-2 124M's
          shape with a short context, for compile times.
vgg19:    VGG19 for 32x32 images, 10 classes: the benchmark.
resnet18: ResNet-18 for 32x32 images, narrow: the tests.
llama-s:  LLaMA-style decoder: 4 layers, width 256, 8 heads of which 2 have keys and
          values, SwiGLU of 704, 128 positions, 2048 tokens: the benchmark.
lstm:     2 layers of LSTM, width 256, 64 positions, 2048 tokens: the benchmark.
unet:     U-Net for 64x64 images, widths 32, 64, 128: the benchmark.
vit:      vision transformer for 32x32 images: 6 layers, width 192, 3 heads, patches
          of 4x4, 10 classes: the benchmark.

On GPUs, at full size (tools/check-gpu):
gpt2-124m:    GPT-2 124M, 1024 positions, GELU by tanh, vocabulary padded to 50304.
vgg19-224:    VGG19 with batch normalization left out, 224x224 images, 1000 classes.
resnet50-224: ResNet-50, 224x224 images, 1000 classes.

Weights are drawn from seed 0. The batch is symbolic. Needs PyTorch and onnx
(Debian's python3-torch and python3-onnx, or newer wheels; llama-s, lstm, unet
and vit need the wheels, and onnxscript); using Pipewright does not.
"""

import inspect
import math
import os
import sys
from typing import Callable, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from export import export  # noqa: E402
from modern_models import Llama, LstmDecoder, UNet, Vit  # noqa: E402


class Block(nn.Module):
    """Pre-norm decoder block: causal attention, then a GELU perceptron."""

    def __init__(self, width, heads, positions, gelu="none"):
        super().__init__()
        self.heads = heads
        self.gelu = gelu
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        mask = torch.ones(positions, positions, dtype=torch.bool).tril()
        self.register_buffer("mask", mask.view(1, 1, positions, positions), persistent=False)

    def forward(self, x):
        batch, time, width = x.shape
        split = lambda t: t.view(-1, time, self.heads, width // self.heads).transpose(1, 2)
        q, k, v = map(split, self.qkv(self.ln1(x)).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(width // self.heads))
        weights = F.softmax(scores.masked_fill(~self.mask, float("-inf")), dim=-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(-1, time, width))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate=self.gelu))


class Decoder(nn.Module):
    """GPT-2's shape: learned positions, tied embedding."""

    def __init__(self, layers, width, heads, positions, vocabulary, gelu="none"):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads, positions, gelu) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        self.positions = positions
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 / math.sqrt(2 * layers) if "proj" in name or "fc2" in name else 0.02
                nn.init.normal_(parameter, std=scale)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(self.positions, device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def vgg19(side=32, classes=10):
    layers, channels = [], 3
    for width in [64, 64, 0, 128, 128, 0] + [256] * 4 + [0] + [512] * 4 + [0] + [512] * 4 + [0]:
        if width == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
        channels = width
    if side == 32:
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, classes))
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(512 * (side // 32) ** 2, 4096), nn.ReLU(),
        nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around a skip connection, each normalized."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = nn.Sequential() if stride == 1 and channels == width else nn.Sequential(
            nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.down(x))


def resnet18():
    """ResNet-18 for 32x32 images at a quarter of the usual width."""
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for width, stride in [(16, 1), (32, 2), (64, 2), (128, 2)]:
        layers += [BasicBlock(channels, width, stride), BasicBlock(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a skip connection, each normalized."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.down = nn.Sequential() if stride == 1 and channels == 4 * width else nn.Sequential(
            nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.down(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, stride, blocks in [(64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3)]:
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Model(NamedTuple):
    build: Callable[[], nn.Module]
    # What its input is called: tokens, or an image of some pixels' width.
    input: str
    side: int = 32
    # Written by tools/export.py; the other files are older than that.
    by_export: bool = False


MODELS = {
    "byte-gpt": Model(lambda: Decoder(4, 128, 4, 128, 256), "tokens"),
    "gpt-s": Model(lambda: Decoder(4, 256, 4, 128, 8192), "tokens"),
    "gpt2": Model(lambda: Decoder(12, 768, 12, 128, 50257), "tokens"),
    "vgg19": Model(vgg19, "image"),
    "resnet18": Model(resnet18, "image"),
    "llama-s": Model(lambda: Llama(4, 256, 8, 2, 704, 128, 2048), "tokens", by_export=True),
    "lstm": Model(lambda: LstmDecoder(2, 256, 64, 2048), "tokens", by_export=True),
    "unet": Model(lambda: UNet(32), "image", 64, by_export=True),
    "vit": Model(lambda: Vit(6, 192, 3, 4, 32, 10), "image", by_export=True),
    "gpt2-124m": Model(lambda: Decoder(12, 768, 12, 1024, 50304, "tanh"), "tokens"),
    "vgg19-224": Model(lambda: vgg19(224, 1000), "image", 224),
    "resnet50-224": Model(resnet50, "image", 224),
}


def random_inputs(name, model, batch, device="cpu"):
    """A batch of what the model of that name takes."""
    if MODELS[name].input == "tokens":
        vocabulary = model.wte.weight.shape[0]
        return torch.randint(0, vocabulary, (batch, model.positions), device=device)
    side = MODELS[name].side
    return torch.randn(batch, 3, side, side, device=device)


def main():
    name, path = sys.argv[1], sys.argv[2]
    torch.manual_seed(0)
    model = MODELS[name].build().train()
    kind = MODELS[name].input
    example = random_inputs(name, model, 2)
    if MODELS[name].by_export:
        export(model, example, path, input_names=[kind], output_names=["logits"])
        return
    # From 2.5 on the exporter that keeps the training graph has to be asked for.
    old = "dynamo" in inspect.signature(torch.onnx.export).parameters
    torch.onnx.export(
        model, (example,), path, **({"dynamo": False} if old else {}), opset_version=17, input_names=[kind],
        output_names=["logits"],
        dynamic_axes={kind: {0: "batch"}, "logits": {0: "batch"}},
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


if __name__ == "__main__":
    main()
