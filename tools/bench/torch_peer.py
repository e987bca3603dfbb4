"""PyTorch as the peer of a benchmark: reads lines with a number of steps, answers with the
milliseconds of each, on the clock and of the processor, in turn. The weights are those of the
seed that exports the model.

    torch_peer.py MODEL THREADS MODE FOLDER      MODEL: a name of contests.py
                                                 MODE: eager or compile

Its inputs and targets are written to FOLDER, as .npy files under their names in the ONNX file.
With RANK, WORLD_SIZE and so on as torchrun sets them it is one of several replicas
(DistributedDataParallel over gloo), of which the first reads and answers.
"""

import os
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "reference"))
from contests import CONTESTS  # noqa: E402
from export_models import MODELS, random_inputs  # noqa: E402


def main():
    name, threads, mode, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    contest = CONTESTS[name]
    model = MODELS[name].build().train()
    inputs = random_inputs(name, model, contest.batch)
    with torch.no_grad():
        output = model(inputs)
    if contest.loss == "mse":
        targets, loss_of = torch.randn_like(output), F.mse_loss
    else:
        classes = output.shape[-1]
        targets = torch.randint(0, classes, output.shape[:-1])
        loss_of = lambda logits, targets: F.cross_entropy(
            logits.reshape(-1, classes), targets.reshape(-1))
    for each, tensor in ((contest.input, inputs), ("targets", targets)):
        numpy.save(os.path.join(folder, each), tensor.numpy())
    optimizer = (torch.optim.AdamW(model.parameters(), 1e-4) if contest.optimizer == "adamw" else
                 torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9))

    replicas = int(os.environ.get("WORLD_SIZE", "1"))
    is_first = os.environ.get("RANK", "0") == "0"
    forward = model
    if replicas > 1:
        torch.distributed.init_process_group("gloo")
        forward = torch.nn.parallel.DistributedDataParallel(model)
    if mode == "compile":
        forward = torch.compile(forward)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(forward(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    # The first step compiles, the second one has what the first one allocated.
    step()
    step()
    if is_first:
        print("ready", flush=True)
    while True:
        count = int(sys.stdin.readline() or 0) if is_first else 0
        if replicas > 1:
            agreed = torch.tensor(count)
            torch.distributed.broadcast(agreed, 0)
            count = agreed.item()
        if not count:
            break
        times = []
        for _ in range(count):
            begin = time.perf_counter(), time.process_time()
            step()
            end = time.perf_counter(), time.process_time()
            times += [1e3 * (b - a) for a, b in zip(begin, end)]
        if is_first:
            print(" ".join(f"{t:.3f}" for t in times), flush=True)


if __name__ == "__main__":
    main()
