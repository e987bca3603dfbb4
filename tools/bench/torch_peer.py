"""PyTorch as the peer of a benchmark: reads lines with a number of steps, answers with the
milliseconds of each. The weights are those of the seed that exports the model.

    torch_peer.py MODEL THREADS MODE      MODEL: a name of export_models.py
                                          MODE: eager or compile
"""

import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "reference"))
from export_models import MODELS  # noqa: E402


def main():
    name, threads, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    build, kind = MODELS[name]
    model = build().train()
    if kind == "tokens":
        batch, vocabulary = 8, model.wte.weight.shape[0]
        inputs = torch.randint(0, vocabulary, (batch, model.positions))
        labels = torch.randint(0, vocabulary, (batch, model.positions))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    else:
        batch = 32
        inputs = torch.randn(batch, 3, 32, 32)
        labels = torch.randint(0, 10, (batch,))
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)

    forward = torch.compile(model) if mode == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = forward(inputs)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    # The first step compiles, the second one has what the first one allocated.
    step()
    step()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
        print(" ".join(f"{t:.3f}" for t in times), flush=True)


if __name__ == "__main__":
    main()
