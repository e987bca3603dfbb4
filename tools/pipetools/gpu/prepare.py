"""Compiles and links the programs, and trains their likes on the CPU. Needs a
build of Pipewright, no GPU."""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import tempfile
import threading

from ..files import nudge
from ..running import ROOT, Failure, call, find_pipewright
from . import programs as what
from .cases import copy_tests
from .programs import STEPS

SCRIPTS = ("tools/check-gpu", "tools/pipetools", "tools/bench/gpu_peer.py",
           "tools/reference", "tools/export.py")


class Preparation:
    def __init__(self, work, models, here):
        self.work = work
        self.models = models
        # Linked as pipewright links, for this very machine.
        self.here = here
        self.pipewright = find_pipewright()
        self.runtime = None
        self.lock = threading.Lock()
        # Weights trained on the CPU, and what the CPU target differs by from itself.
        self.references = {}

    def prepare(self, program):
        """Why it is not possible, or None."""
        out = program.folder(self.work)
        options = program.model_options(self.models) + program.placement()
        if not program.big:
            options += ["--precision", program.precision]
        options += program.variant_options()
        command = [self.pipewright, "compile", *options, "--target", "cuda", "-o", out]
        try:
            call(command + ([] if self.here else ["--no-build"]), "compilation")
        except Failure as failure:
            try:
                call([self.pipewright, "plan", *options], "the plan")
            except Failure as refused:
                return str(refused).partition("error: ")[2].splitlines()[0]
            raise failure
        with open(os.path.join(out, "src/main.cpp")) as file:
            table = file.read().partition(".inputs = {\n")[2].partition("\n  },")[0]
        # What the program counts itself is no data. Integers without a limit are masks.
        program.data = [
            name + ("=ones" if "::I64" in line and ".limit = " not in line else "=random")
            for line in table.splitlines() if ".counted = " not in line
            for name in re.findall(r'\.name = "([^"]*)"', line)]
        if not self.here:
            self.link(out)
        shutil.rmtree(os.path.join(out, "src"))
        weights = os.path.join(out, "weights.safetensors")
        if program.part == "agree":
            os.replace(weights, program.initial(self.work))
            self.make_reference(program)
        else:
            os.remove(weights)
        return None

    def link(self, out):
        """The GPU's machine may have neither MPI nor oneDNN."""
        with self.lock:
            self.runtime = self.runtime or self.build_runtime(out)
        source = os.path.join(out, "src")
        inputs = sorted(glob.glob(os.path.join(source, "*.cpp")) +
                        glob.glob(os.path.join(source, "*.S")))
        call(["c++", "-std=c++20", "-O1", "-I" + source, *inputs, self.runtime,
              "-Wl,-rpath,$ORIGIN/../../lib", "-s", "-o", os.path.join(out, "train")],
             "linking the program")

    def build_runtime(self, out):
        """The runtime for GPUs alone, from the sources that a program carries, as
        one shared object for all programs."""
        library = os.path.join(self.work, "lib/libpipewright_runtime.so")
        with tempfile.TemporaryDirectory() as build:
            call(["cmake", "-S", os.path.join(out, "src/runtime"), "-B", build,
                  "-DCMAKE_BUILD_TYPE=Release", "-DPIPEWRIGHT_MPI=OFF", "-DPIPEWRIGHT_CPU=OFF"],
                 "configuring the runtime")
            call(["cmake", "--build", build, "--parallel", str(os.cpu_count())],
                 "building the runtime", timeout=1800)
            os.makedirs(os.path.dirname(library))
            # Programs look for it by this name in the folder beside theirs, wherever that is.
            call(["c++", "-shared", "-Wl,-soname," + os.path.basename(library),
                  "-Wl,--whole-archive",
                  os.path.join(build, "libpipewright_runtime.a"), "-Wl,--no-whole-archive",
                  "-pthread", "-ldl", "-s", "-o", library], "linking the runtime")
        return library

    def make_reference(self, program):
        path = program.reference(self.work)
        with self.lock:
            if path in self.references:
                return
            self.references[path] = 0.0
        self.train_reference(program, path)
        if not program.amplifies():
            return
        with tempfile.TemporaryDirectory() as folder:
            other, nudged = (os.path.join(folder, name) for name in ("other", "nudged"))
            nudge(program.initial(self.work), nudged)
            for options, training in ((["--layout", "nhwc"], []), ([], ["--weights", nudged])):
                self.train_reference(program, other, options, training)
                self.references[path] = max(self.references[path],
                                            program.difference(self.work, other)[0])

    def train_reference(self, program, path, options=(), training=()):
        # One rank is enough, but for schedules whose ranks compute other things.
        stages = program.ranks * program.loops
        placement = program.placement() if program.apart else [
            "--loops", str(stages), "--schedule", "gpipe"]
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "cpu")
            call([self.pipewright, "compile", *program.model_options(self.models), *placement,
                  "--precision", program.reference_precision, *program.sum_options(), *options,
                  "-o", out], "compilation for the CPU")
            call([os.path.join(out, "train"), *training_options(program), *program.saving(path),
                  "--steps", str(program.compared_steps()), *training], "training on the CPU")


def training_options(program):
    return ["--steps", str(STEPS), "--lr", "0.01", "--no-shuffle", *data_options(program)]


def data_options(program):
    return [word for each in program.data for word in ("--data", each)]


def copy_scripts(work):
    for script in SCRIPTS:
        destination = os.path.join(work, script)
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        source = os.path.join(ROOT, script)
        if os.path.isdir(source):
            shutil.copytree(source, destination, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, destination)


def prepare(work, checks, models, match, share, here):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "references"))
    if any(part == "libraries" for part, _ in checks):
        copy_tests(work)
    preparation = Preparation(work, models, here)
    programs = what.planned(preparation.pipewright, checks, models, match, share)
    possible = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (program, reason) in enumerate(
                zip(programs, pool.map(preparation.prepare, programs))):
            print(f"[{number + 1}/{len(programs)}] {program.name}"
                  f"{': not possible: ' + reason if reason else ''}", flush=True)
            if not reason:
                possible.append(program)
    for program in possible:
        program.own_difference = preparation.references.get(program.reference(work), 0.0)
    copy_scripts(work)
    with open(os.path.join(work, "manifest.json"), "w") as file:
        json.dump([vars(program) for program in possible], file, indent=1)
    size = sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(work) for name in names)
    print(f"prepared {len(possible)} programs in {work}: {size / 2**20:.0f} MiB")
