"""Compiles models and times their steps, for benchmarks on CPUs."""

import os
import resource
import statistics
import tempfile

from .files import read_seconds
from .running import ROOT, call, find_pipewright

BYTE_GPT = str(ROOT / "test/Inputs/models/byte-gpt.onnx")
TEXT = ("tokens=random", "targets=random")


def compile_model(model, out, *options, pipewright=None):
    loss = () if "--loss" in options else ("--loss", "softmax-cross-entropy")
    call([pipewright or find_pipewright(), "compile", model, "-o", out, *loss, *options], "compilation")


def train(out, steps, cores, threads, log, data=TEXT, options=()):
    """The output of a program that trains on random data and on some cores alone."""
    command = ["taskset", "-c", cores, os.path.join(out, "train"), "--steps", steps, "--lr", "1e-4",
               "--threads-per-rank", threads, "--save", "none", "--log", log, *options]
    for each in data:
        command += ["--data", each]
    return call(command, "training", timeout=3600)


def processor_seconds_of(body):
    """What body() returns, and the processor time that its child processes took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = body()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def step_processor_seconds(out, steps, cores, threads=1, data=TEXT, options=()):
    """Processor time of a step: a run of `steps` + 1 less a run of one."""
    def run(count):
        return processor_seconds_of(
            lambda: train(out, count, cores, threads, os.devnull, data, options))[1]
    return (run(steps + 1) - run(1)) / steps


def seconds_of_steps(out, steps, cores, threads=1, data=TEXT, warm_up=1, options=()):
    """The seconds of each step behind the first ones."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        train(out, steps, cores, threads, log.name, data, options)
        return read_seconds(log.name)[warm_up:steps]


def step_seconds(*arguments, **options):
    """Their median."""
    return statistics.median(seconds_of_steps(*arguments, **options))
