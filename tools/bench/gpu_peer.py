#!/usr/bin/env python3
"""PyTorch as the peer of a GPU benchmark: one line of JSON with the
milliseconds of each training step.

    gpu_peer.py MODEL --batch N --micro-batches M --steps K [--precision bf16|tf32|f32]
                [--eager] [--attention cudnn|flash] [--deterministic]

MODEL is a name of export_models.py. PyTorch gets what makes it fastest:
torch.compile of model and loss together, flash attention through
scaled_dot_product_attention (of PyTorch's choice, or the one that --attention names),
channels last for images, bf16 autocast, a fused optimizer, TF32 where asked for. Needs PyTorch and a GPU (with --device cpu it
is a check of this script alone).
"""

import argparse
import contextlib
import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "reference"))
import export_models  # noqa: E402


ATTENTIONS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def flash_forward(block, x):
    """Block.forward with the attention that PyTorch has a kernel for."""
    batch, time, width = x.shape
    split = lambda t: t.view(-1, time, block.heads, width // block.heads).transpose(1, 2)
    q, k, v = map(split, block.qkv(block.ln1(x)).split(width, dim=2))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + block.proj(mixed.transpose(1, 2).reshape(-1, time, width))
    return x + block.fc2(F.gelu(block.fc1(block.ln2(x)), approximate=block.gelu))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--precision", choices=["bf16", "tf32", "f32"], default="bf16")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--attention", choices=list(ATTENTIONS))
    parser.add_argument("--deterministic", action="store_true",
                        help="the same bits on every run, as PyTorch's notes on it advise")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    if arguments.batch % arguments.micro_batches:
        sys.exit("error: the batch must be a multiple of the number of micro-batches")
    device = arguments.device
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest" if arguments.precision == "f32" else "high")
    # What convolutions do without being asked.
    if arguments.precision == "f32":
        torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = not arguments.deterministic
    if arguments.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True)

    export_models.Block.forward = flash_forward
    entry = export_models.MODELS[arguments.model]
    model = entry.build().train().to(device)
    size = arguments.batch // arguments.micro_batches
    fused = device == "cuda"
    if entry.input == "tokens":
        vocabulary = model.wte.weight.shape[0]
        shape = (arguments.micro_batches, size, model.positions)
        inputs = torch.randint(0, vocabulary, shape, device=device)
        labels = torch.randint(0, vocabulary, shape, device=device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=fused)
    else:
        side = entry.side
        model = model.to(memory_format=torch.channels_last)
        inputs = [torch.randn(size, 3, side, side, device=device).to(
            memory_format=torch.channels_last) for _ in range(arguments.micro_batches)]
        classes = list(model.parameters())[-1].shape[0]
        labels = torch.randint(0, classes, (arguments.micro_batches, size), device=device)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, fused=fused)
    parameters = sum(p.numel() for p in model.parameters())

    def loss_of(samples, wanted):
        logits = model(samples)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))

    attention = contextlib.nullcontext
    if arguments.attention:
        attention = lambda: sdpa_kernel(ATTENTIONS[arguments.attention])
    run = loss_of if arguments.eager else torch.compile(loss_of)

    def step():
        for samples, wanted in zip(inputs, labels):
            with torch.autocast(device, torch.bfloat16, enabled=arguments.precision == "bf16"), \
                    attention():
                loss = run(samples, wanted)
            (loss / arguments.micro_batches).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(5):
        step()
    times = []
    if device == "cuda":
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.steps + 1)]
        torch.cuda.synchronize()
        for number, mark in enumerate(marks):
            mark.record()
            if number < arguments.steps:
                step()
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    else:
        for _ in range(arguments.steps):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
    result = {"milliseconds": times, "parameters": parameters, "torch": torch.__version__,
              "compiled": not arguments.eager, "precision": arguments.precision}
    if device == "cuda":
        result["card"] = torch.cuda.get_device_name()
        result["peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
