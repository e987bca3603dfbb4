"""Runs prepared programs on a GPU, or on what stands in for CUDA's libraries.
Each check becomes a record; report.py makes tables of records."""

import concurrent.futures
import csv
import glob
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time

from ..files import digest, read_events, read_records
from ..running import Failure, call
from .cases import listed_cases
from .prepare import data_options, training_options
from .programs import (
    BIG, COUNTED, COUNTED_WAY, PROGRAMS_OF, SANITIZED, STEPS, WAYS, Program, chosen)

TIMED_STEPS = 12
ALLOWED_OVERHEAD = 1.10
DOUBLES = "test doubles"
# The ways to train in PyTorch that are tried; the fastest is the peer.
PEERS = {"tokens": {"PyTorch's attention": [], "cuDNN's": ["--attention", "cudnn"]},
         "images": {"": []}}
# Parts that measure no time, so that checks may go on beside each other.
UNTIMED = ("libraries", "agree", "sanitize")
# All ranks on one GPU, where there are more.
TRANSPORT = ["--transport", "cuda-local", "--gpus", "0"]


# --- compute-sanitizer -----------------------------------------------------------

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def find_tool(name):
    """Of a toolkit, which often is not on PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def sanitizer_blocks(output):
    """Each complaint of compute-sanitizer, as its lines."""
    blocks = []
    for line in output.splitlines():
        text = re.match(r"========= ?(.*)", line)
        if not text:
            continue
        # What belongs to a complaint is indented.
        if re.match(r"(Invalid|Error|Warning|Barrier error|Uninitialized|Race|Divergent|Fatal)",
                    text.group(1)):
            blocks.append([text.group(1)])
        elif blocks and text.group(1).startswith("  "):
            blocks[-1].append(text.group(1).strip())
    return ["\n".join(block) for block in blocks]


def kernels_of(block):
    """Names of the kernels that a complaint is about."""
    return (re.findall(r"\bat (.+?)\+0x[0-9a-f]+", block)
            or re.findall(r"\bat 0x[0-9a-f]+ in (?:\S+:\d+:)?(.+)", block))


def entries_of(paths):
    """Names of the kernels whose PTX is in these files."""
    names = set()
    for path in paths:
        with open(path, "rb") as file:
            names.update(name.decode() for name in re.findall(rb"\.entry\s+([\w$]+)", file.read()))
    return names


def judge_sanitizer(output, entries):
    """Complaints about kernels with these entries, and how many about those of
    cuBLASLt, cuDNN and NCCL, of which they know more than we."""
    if not re.search(r"(ERROR|RACECHECK) SUMMARY: ", output):
        return ["compute-sanitizer came to no end: " + output[-500:]], 0
    ours, foreign = [], 0
    for block in sanitizer_blocks(output):
        names = [re.match(r"[\w$]*", name).group(0) for name in kernels_of(block)]
        if names and not entries.intersection(names):
            foreign += 1
        else:
            ours.append(block)
    return ours, foreign


# --- Counters of kernels -----------------------------------------------------------

# What ncu calls them: nanoseconds, percents of the peak, bytes a second.
COUNTERS = {"gpu__time_duration.sum": "nanoseconds",
            "sm__warps_active.avg.pct_of_peak_sustained_active": "warps",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
            "dram__bytes.sum.per_second": "rate"}


def read_counters(output):
    """By kernel the counters of each launch, from what ncu prints as CSV among other lines."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(lines):
        name = COUNTERS.get(row.get("Metric Name"))
        if name:
            counters = launches.setdefault(row["Kernel Name"].partition("(")[0], {})
            counters.setdefault(name, []).append(float(row["Metric Value"].replace(",", "")))
    return launches


def together(path):
    """Of the time in which some rank runs a task, the part in which several do, by a trace."""
    changes = sorted(change for event in read_events(path) if event.get("cat") == "task"
                     for change in ((event["ts"], 1), (event["ts"] + event["dur"], -1)))
    some = several = running = begin = 0
    for time_of, change in changes:
        some += (time_of - begin) * (running > 0)
        several += (time_of - begin) * (running > 1)
        running, begin = running + change, time_of
    return several / some if some else 0


class Machine:
    """What `versions` is about, the first check of every run."""

    name = model = "machine"
    precision = ""


class Loading:
    """When CUDA loads modules: what `communicators` is tried with."""

    part, precision = "communicators", ""

    def __init__(self, mode):
        self.mode = mode
        self.name = self.model = f"communicators-{mode.lower()}"


LOADINGS = [Loading("EAGER"), Loading("LAZY")]


# --- Parts ---------------------------------------------------------------------


class Measurement:
    def __init__(self, work, environment, records, card, deadline, jobs, rounds):
        self.work = work
        self.environment = environment
        self.path = records
        self.card = card
        self.deadline = deadline
        self.jobs = jobs
        # Of a speed, whose median counts.
        self.rounds = rounds
        self.lock = threading.Lock()
        self.over = {(r["part"], r["program"]) for r in read_records([records])
                     if not r["failures"] and r["card"] == card}

    def seconds(self, most):
        """For a call: so many, or what is left, so that a run which may only take
        minutes can tell what had no end."""
        return min(most, max(30, self.deadline + 30 - time.monotonic()))

    def executable(self, program):
        return os.path.join(program.folder(self.work), "train")

    def train(self, program, folder, name, extra=(), prefix=(), timeout=600, saving=None):
        """The weights' file, and what was printed."""
        path = os.path.join(folder, name + ".safetensors")
        output = call(
            [*prefix, self.executable(program), *training_options(program),
             *(saving(path) if saving else ["--save", path]), *TRANSPORT, "--weights", program.initial(self.work), *extra],
            "training", self.environment, self.seconds(timeout))
        return path, output

    def versions(self, machine, folder):
        script = os.path.join(self.work, "tools/pipetools/gpu/versions.py")
        size = 1 << (20 if self.card == DOUBLES else 30)
        found = json.loads(call([sys.executable, script, str(size)], "looking for versions",
                                self.environment, self.seconds(120)).splitlines()[-1])
        return {"versions": found,
                "verdict": ", ".join(f"{name} {version}" for name, version in found.items())}, []

    def libraries(self, case, folder):
        verdict, failures = case.run(self.environment, self.seconds(120))
        return {"verdict": verdict}, failures

    def agree(self, program, folder):
        path, _ = self.train(program, folder, "run")
        compared = path
        if program.compared_steps() != STEPS:
            compared, _ = self.train(program, folder, "compared",
                                     ["--steps", str(program.compared_steps())],
                                     saving=program.saving)
        difference, where = program.difference(self.work, compared)
        most = program.allowed()
        failures = []
        if not difference <= most:
            failures.append(f"'{where}' differs from the CPU target by {difference:.2e} of its "
                            f"{'size' if program.given else 'change'}, {most:.1e} is allowed")
        for name, extra in (("again", []), ("delayed", ["--chaos", "1"])):
            if not digest(self.train(program, folder, name, extra)[0]) == digest(path):
                failures.append(f"other bits when run {name}")
        return {"cut": program.cut(), "bits": digest(path), "difference": difference,
                "allowed": most}, failures

    def sanitize(self, program, folder):
        sanitizer = find_tool("compute-sanitizer")
        if not sanitizer:
            raise Failure("compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin")
        verdicts, failures = {}, []
        entries = entries_of([self.executable(program),
                              *glob.glob(os.path.join(self.work, "lib", "*.so"))])
        for tool in TOOLS:
            try:
                _, output = self.train(
                    program, folder, tool, ["--timeout", "600"],
                    [sanitizer, "--tool", tool, "--print-limit", "10000",
                     *(["--report-api-errors", "no"] if tool == "memcheck" else [])], 1800)
            except Failure as failure:
                output = str(failure)
            ours, foreign = judge_sanitizer(output, entries)
            verdicts[tool] = f"{len(ours) or 'none'}" + (f", others' {foreign}" if foreign else "")
            # The first two are asked for; the others may complain of what is meant.
            if tool in TOOLS[:2]:
                failures += [f"{tool}: {block}" for block in ours[:3]]
        return {"verdicts": verdicts}, failures

    def step_seconds(self, program, folder, extra=()):
        log = os.path.join(folder, "log.jsonl")
        output = call([self.executable(program), "--steps", str(TIMED_STEPS), "--lr", "1e-4",
                       "--save", "none", "--log", log, "--weights", "random", *data_options(program),
                       *TRANSPORT, *extra], "training", self.environment, self.seconds(600))
        with open(log) as file:
            records = [json.loads(line) for line in file]
        return sorted(r["seconds"] for r in records if "seconds" in r), output

    def median_seconds(self, program, folder):
        seconds, _ = self.step_seconds(program, folder)
        return seconds[len(seconds) // 2]

    def predicted_seconds(self, program):
        plan = call([self.executable(program), "--plan"], "the plan", self.environment)
        return json.loads(plan)["predicted_step_seconds"]

    def ways(self, program, folder):
        """A step of GPT-2 by other means."""
        options = [word.format(folder=folder) for word in WAYS[program.variant][2]]
        if program.variant == "algorithms":
            self.step_seconds(program, folder, options)
        seconds, _ = self.step_seconds(program, folder, options)
        measured, predicted = seconds[len(seconds) // 2], self.predicted_seconds(program)
        return {"way": program.variant, "seconds": measured, "predicted": predicted,
                "verdict": f"{1e3 * measured:.1f} ms a step, predicted "
                           f"{1e3 * predicted:.1f} ms"}, []

    def overhead(self, four, folder):
        """Of the program on 4 ranks, with the one on 1 rank in turn."""
        one = Program.from_record({**vars(four), "name": four.name.replace("-4x1-", "-1x1-")})
        seconds = [(self.median_seconds(one, folder), self.median_seconds(four, folder))
                   for _ in range(self.rounds)]
        ratio = statistics.median(b for _, b in seconds) / statistics.median(a for a, _ in seconds)
        missed = ratio > ALLOWED_OVERHEAD and self.card != DOUBLES
        trace = os.path.join(folder, "trace.json")
        self.step_seconds(four, folder, ["--trace", trace])
        return {"one": [a for a, _ in seconds], "four": [b for _, b in seconds],
                "together": together(trace),
                "predicted": [self.predicted_seconds(one), self.predicted_seconds(four)]}, (
            [f"4 ranks take {ratio:.3f} times as long as 1"] if missed else [])

    def counters(self, program, folder):
        """What ncu counts in our kernels of a step."""
        profiler = find_tool("ncu")
        if not profiler:
            raise Failure("ncu is neither on PATH nor in /usr/local/cuda/bin")
        output = call([profiler, "--csv", "--print-units", "base", "--clock-control", "none",
                       "--metrics", ",".join(COUNTERS), "-k", f"regex:{COUNTED}",
                       self.executable(program), "--steps", "1", "--lr", "1e-4", "--save", "none",
                       "--weights", "random", *data_options(program), *TRANSPORT,
                       *WAYS[program.variant][2]], "ncu", self.environment, self.seconds(600))
        kernels = read_counters(output)
        incomplete = [name for name, counters in kernels.items() if len(counters) < len(COUNTERS)]
        return {"kernels": kernels}, (
            [f"ncu counted in no kernel: {output[-500:]}"] if not kernels else
            [f"ncu left out counters of {', '.join(incomplete)}"] if incomplete else [])

    def communicators(self, loading, folder):
        script = os.path.join(self.work, "tools/pipetools/gpu/communicators.py")
        found = json.loads(call([sys.executable, script, "4"], "making communicators",
                                {**self.environment, "CUDA_MODULE_LOADING": loading.mode},
                                self.seconds(120)).splitlines()[-1])
        text = ", ".join(f"{seconds:.2f} s and {taken / 2**20:.0f} MiB"
                         for seconds, taken in zip(found["seconds"], found["bytes"]))
        return {"communicators": found, "verdict": text}, []

    def speed(self, program, folder):
        count, size, _ = program.big
        ways = PEERS[BIG[program.model][1]]
        ours, theirs, torch, why = [], {way: [] for way in ways}, "", ""
        for _ in range(self.rounds):
            ours.append(self.median_seconds(program, folder))
            for way, options in ways.items() if not why else ():
                try:
                    peer = self.peer(program, options)
                    theirs[way].append(sorted(peer["milliseconds"])[TIMED_STEPS // 2] / 1e3)
                    torch = peer["torch"]
                except (Failure, ValueError, KeyError) as failure:
                    why = str(failure).strip().splitlines()[-1]
        _, output = self.step_seconds(program, folder, ["--profile", "3"])
        table = re.search(r"^\| call \|.*?^A step took.*?$", output, re.MULTILINE | re.DOTALL)
        return {"batch": count * size, "shape": f"{count} x {size}", "ours": ours,
                "predicted": self.predicted_seconds(program),
                "theirs": theirs, "torch": torch, "no_peer": why, "profile": table.group(0) if table else ""}, (
                    ([] if table else ["--profile printed no table"]) +
                    ([why] if why and not re.search("No module named 'torch'|" + DOUBLES, why)
                     else []))

    def peer(self, program, options):
        if self.card == DOUBLES:
            raise Failure("PyTorch does not run on test doubles")
        count, size, _ = program.big
        script = os.path.join(self.work, "tools/bench/gpu_peer.py")
        output = call([sys.executable, script, program.model, "--batch", str(count * size),
                       "--micro-batches", str(count), "--steps", str(TIMED_STEPS), *options],
                      "PyTorch", timeout=self.seconds(900))
        # Warnings may stand on either side.
        lines = [line for line in output.splitlines() if line.startswith('{"milliseconds"')]
        if not lines:
            raise Failure(f"{script} printed no figures: {output[-500:]}")
        return json.loads(lines[-1])

    def check(self, part, program):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                figures, failures = getattr(self, part)(program, folder)
            except (Failure, OSError, KeyError) as error:
                figures, failures = {}, [str(error)]
        record = {"part": part, "program": program.name, "model": program.model,
                  "precision": program.precision, "card": self.card,
                  "date": time.strftime("%Y-%m-%d"), "failures": failures,
                  "minutes": round((time.monotonic() - begin) / 60, 2), **figures}
        with self.lock, open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        return record

    def check_in_time(self, part, program):
        return None if time.monotonic() > self.deadline else self.check(part, program)

    def run(self, part, programs, expression):
        """How many were left for another run."""
        suits = {"sanitize": lambda p: SANITIZED.search(p.name),
                 "overhead": lambda p: p.ranks > 1,
                 "counters": lambda p: p.variant == COUNTED_WAY}.get(part, lambda p: True)
        programs = [p for p in programs if p.part == PROGRAMS_OF.get(part, part) and suits(p)
                    and re.search(expression, p.name) and (part, p.name) not in self.over]
        left = 0
        with concurrent.futures.ThreadPoolExecutor(self.jobs if part in UNTIMED else 1) as pool:
            records = pool.map(lambda program: self.check_in_time(part, program), programs)
            for number, (program, record) in enumerate(zip(programs, records)):
                if not record:
                    left += 1
                    continue
                if not record["failures"]:
                    self.over.add((part, program.name))
                print(f"{part} [{number + 1}/{len(programs)}] {program.name}: "
                      f"{'; '.join(record['failures']) or record.get('verdict', 'good')}",
                      flush=True)
        return left


def library_folders():
    """Where CUDA's libraries lie if they came as Python wheels."""
    return [folder for path in sys.path
            for folder in glob.glob(os.path.join(path, "nvidia", "*", "lib"))]


def card_name(doubles):
    return DOUBLES if doubles else call(
        ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
        "a run").strip().splitlines()[0]


def run(work, checks, doubles, match, share, records, minutes, jobs, rounds):
    """How many checks were left for another run."""
    manifest = os.path.join(work, "manifest.json")
    if not os.path.exists(manifest):
        raise Failure(f"{manifest} is not there: expects a folder made by --prepare")
    folders = ([doubles] if doubles else library_folders()) + [
        folder for folder in [os.environ.get("LD_LIBRARY_PATH")] if folder]
    environment = {"LD_LIBRARY_PATH": ":".join(folders),
                   "PIPEWRIGHT_TEST_LIBRARIES": doubles or ""}
    with open(manifest) as file:
        programs = [Program.from_record(record) for record in json.load(file)]
    programs = chosen([*listed_cases(work, environment), *LOADINGS, *programs], match, share)
    measurement = Measurement(work, environment, records, card_name(doubles),
                              time.monotonic() + 60 * minutes, jobs, rounds)
    told = measurement.check("versions", Machine())
    print("versions:", "; ".join(told["failures"]) or told["verdict"], flush=True)
    return sum(measurement.run(part, programs, expression) for part, expression in checks)
