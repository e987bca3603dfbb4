"""The bytes of weights, gradients and optimizer's states of a rank with eight equal stages, of
which two have ranges at a time, under each level of ZeRO, for Adam, in units of parameters (all: P,
of a stage: S); a stage is padded to 128 bytes for each replica. Says where `pipewright plan` has
other numbers.

    zero-memory.py FOLDER
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../tools"))
from pipetools.onnx_models import Decoder  # noqa: E402

# Of two, a part is more than the stages at work have.
REPLICAS = 2
# Bytes for each parameter: of all, of a replica's part, of a stage.
EXPECTED = {
    ("f32", 0): (16, 0, 0), ("f32", 1): (8, 8, 0), ("f32", 2): (4, 8, 4 * 2), ("f32", 3): (0, 12, 8 * 2),
    ("bf16", 0): (18, 0, 0), ("bf16", 1): (6, 12, 0), ("bf16", 2): (2, 12, 4 * 2), ("bf16", 3): (0, 14, 6 * 2),
}


def main():
    model = Decoder(8, 64, 2, 32).write(sys.argv[1])
    for (precision, level), (whole, part, stage) in EXPECTED.items():
        common = ["pipewright", "plan", model, "--json", "--loss", "mse", "--optimizer", "adamw", "--precision",
                  precision, "--loops", "8", "--schedule", "breadth-first", "--zero", str(level)]
        plan = json.loads(subprocess.run(
            [*common, "--micro-batches", "2", "--micro-batch-size", "1", "--data-parallel", str(REPLICAS)],
            check=True, capture_output=True, text=True).stdout)
        padding = 128 // 4 * REPLICAS if level else 1
        parameters = [-(-each["parameters"] // padding) * padding for each in plan["stages"]]
        memory = plan["ranks"][0]["memory"]
        found = sum(memory.get(name, 0) for name in ("weights", "bf16 weights", "gradients", "optimizer state"))
        expected = (whole + part / REPLICAS) * sum(parameters) + stage * max(parameters)
        # Within its own bytes a search finds it.
        limit = plan["ranks"][0]["arena_bytes"]
        search = subprocess.run(
            [*common, "--remat", "none", "--search", "--ranks", "1", "--workers", str(REPLICAS), "--batch",
             str(2 * REPLICAS), "--micro-batch-size", "1", "--memory-limit", f"{limit}B"],
            capture_output=True, text=True)
        print(f"{precision} ZeRO-{level}: {whole} P + {part} P/D + {stage} S: {found:,}"
              + ("" if found == expected else f", but expected {expected:,.0f}")
              + ("" if search.returncode == 0 else f", not found by a search: {search.stderr.strip()}"))


main()
