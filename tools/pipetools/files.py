"""Reads the files that programs write: weights, logs of training, JSON lines."""

import array
import hashlib
import json
import os


def read_tensors(path):
    """All tensors of a safetensors file by name: (type, shape, bytes)."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def read_floats(path):
    """The f32 tensors of a safetensors file by name."""
    return {name: array.array("f", data) for name, (kind, _, data) in read_tensors(path).items()
            if kind == "F32"}


def nudge(path, to):
    """Copies a safetensors file of f32 tensors with the last bit of each number changed."""
    with open(path, "rb") as file:
        start = file.read(8)
        header = file.read(int.from_bytes(start, "little"))
        words = array.array("I", file.read())
    with open(to, "wb") as file:
        file.write(start + header + array.array("I", [word ^ 1 for word in words]).tobytes())


def read_records(paths):
    """The objects of files with one in each line; files that are not there have none."""
    records = []
    for path in paths:
        if os.path.exists(path):
            with open(path) as file:
                records += [json.loads(line) for line in file if line.strip()]
    return records


def read_events(path):
    """Those of a Chrome trace, which may be a list or have one."""
    with open(path) as file:
        events = json.load(file)
    return events["traceEvents"] if isinstance(events, dict) else events


def read_log(path):
    """The records of steps in the log of a training."""
    return [record for record in read_records([path]) if "step" in record]


def read_losses(path):
    """Loss by number of the step."""
    return {record["step"]: record["loss"] for record in read_log(path) if "loss" in record}


def read_seconds(path):
    """What each step took."""
    return [record["seconds"] for record in read_log(path) if "seconds" in record]


def digest(path):
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
