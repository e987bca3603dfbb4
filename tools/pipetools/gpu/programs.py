"""Which programs the checks on GPUs compile, and what they are compared with."""

import os
import re
import typing
import zlib

from ..agreement import allowed, worst_difference
from ..files import read_floats
from ..processor import cpu_has_bf16
from ..running import ROOT
from ..schedules import listed_schedules

STEPS = 5

# Of these every schedule is tried; of all others 1f1b.
EVERY_SCHEDULE = ("mlp.train", "lenet.train", "gpt2.train", "bert.train")
EVERY_PRECISION = (*EVERY_SCHEDULE, "byte-gpt", "vgg19.train", "resnet18.train")
# Batch norms of few samples amplify what is rounded off: after five steps two
# programs that only sum in other orders are a third of the change apart. So these
# take larger micro-batches, and are compared with the CPU target after one step.
AMPLIFYING = ("resnet18.train", "resnet50.train")
# Their file computes the loss.
OWN_LOSS = ("attention", "gpt2_loss.train")
# Clean under compute-sanitizer: 1, 2 and 4 ranks of a text and an image model.
SANITIZED = re.compile(r"agree-(gpt2|lenet)\.train-\dx1-1f1b-f32$")

# The big models: micro-batches x their size, optimizer, what a sample has, and
# model FLOPs of a sample in a training step: three times those of forward, where
# a multiplication and its addition are two. GPT-2, per token and forward: 2 x
# (12 x 12 x 768^2 + 768 x 50304) for weights, 12 x 4 x 1024 x 768 for attention,
# counted as if it were not causal (Chowdhery et al., "PaLM", 2022, appendix B).
# Images: 19.63 and 4.09 G multiply-adds forward.
BIG = {
    "gpt2-124m": ((2, 32, "adamw"), "tokens", 1024,
                  3 * 1024 * (2 * (144 * 768**2 + 768 * 50304) + 48 * 1024 * 768)),
    "vgg19-224": ((2, 64, "sgd,momentum=0.9"), "images", 1, 3 * 2 * 19.63e9),
    "resnet50-224": ((2, 128, "sgd,momentum=0.9"), "images", 1, 3 * 2 * 4.09e9),
}
# The same total work for 1 and for 4 ranks.
OVERHEAD = ("gpt2-124m", (16, 4, "adamw"))


# Kernels of ours whose counters are read: rows, the longest reductions, the update.
COUNTED_WAY = "no-graphs"
COUNTED = "softmax|layer_norm|reduce_sum|adamw"
# Parts that take programs of another.
PROGRAMS_OF = {"sanitize": "agree", "counters": "ways"}

# The parts of the first half hour on a GPU, in order: what has the most to tell comes first.
# Each check is a part and which of its programs.
HALF_HOUR = {
    "A": [("agree", r"agree-(mlp|gpt2)\.train-[12]x1-1f1b-(f32|bf16)$"),
          ("ways", ""),
          ("speed", "gpt2")],
    "B": [("overhead", ""), ("counters", ""), ("sanitize", SANITIZED.pattern),
          ("communicators", "")],
    "C": [("speed", "resnet50|vgg19"), ("agree", "")],
}


class Variant(typing.NamedTuple):
    """What else a program may be compiled with."""
    options: list = []
    # Those that change what is summed: the CPU target's program has them, too.
    sums: list = []
    # Its bits are its own: where ZeRO-2 and 3 reduce the gradients of a stage more than
    # once, they sum in another order.
    alone: bool = False


VARIANTS = {
    "": Variant(),
    "remat-full": Variant(["--remat", "full"]),
    "remat-pointwise": Variant(["--remat", "pointwise"]),
    "remat-window": Variant(["--remat", "window:1"]),
    "offload": Variant(["--offload", "auto"]),
    "clip": Variant(sums=["--clip-norm", "0.1"]),
    "2-replicas": Variant(sums=["--data-parallel", "2"]),
    "2-replicas-zero-1": Variant(["--zero", "1"], ["--data-parallel", "2"]),
    "2-replicas-zero-2": Variant(["--zero", "2"], ["--data-parallel", "2"], alone=True),
    "2-replicas-zero-3": Variant(["--zero", "3"], ["--data-parallel", "2"], alone=True),
    "3-replicas-zero-1-clip": Variant(["--zero", "1"],
                                      ["--data-parallel", "3", "--clip-norm", "0.1"]),
}
# GPT-2 124M by other means, each beside its prediction: shape, options of the compilation,
# of the run.
WAYS = {
    "4x16": ((4, 16, "adamw"), [], []),
    "2x32": ((2, 32, "adamw"), [], []),
    "1x64": ((1, 64, "adamw"), [], []),
    "own-attention": ((2, 32, "adamw"), [], ["--attention", "own"]),
    "epilogues-bias": ((2, 32, "adamw"), ["--epilogues", "bias"], []),
    "epilogues-none": ((2, 32, "adamw"), ["--epilogues", "none"], []),
    "no-graphs": ((2, 32, "adamw"), [], ["--no-graphs"]),
    # The first run times the algorithms of products, the second takes the fastest.
    "algorithms": ((2, 32, "adamw"), [], ["--algorithms", "{folder}/algorithms"]),
}
VARIED = ("gpt2.train", "lenet.train", "resnet18.train")


class Program:
    """One compiled program."""

    def __init__(self, part, model, ranks, loops, schedule, precision, big=None, apart=False,
                 variant="", given=False):
        self.part = part
        self.model = model
        self.ranks = ranks
        self.loops = loops
        self.schedule = schedule
        self.precision = precision
        # CPUs have no tf32, and not all have bf16.
        self.reference_precision = precision if (
            precision == "bf16" and cpu_has_bf16()) else "f32"
        self.big = big
        # Its gradients are other ones than those of most schedules.
        self.apart = apart
        self.variant = variant
        # A file of --models, of which nothing is known.
        self.given = given
        # "name=kind" for each input.
        self.data = []
        # Of two results of the CPU target that sum in other orders.
        self.own_difference = 0.0
        self.name = (f"{part}-{model}-{ranks}x{loops}-{schedule}-{precision}".replace(":", "-")
                     + (f"-{variant}" if variant else ""))

    @staticmethod
    def from_record(record):
        program = Program.__new__(Program)
        vars(program).update(record)
        return program

    def folder(self, work):
        return os.path.join(work, "programs", self.name)

    def summed_as(self, precision):
        """Programs of which this is the same sum the same numbers. (Sums over micro-batches
        of a weight that two stages share follow the stages.)"""
        apart = f"-{self.ranks}x{self.loops}-{self.schedule}" if self.apart else ""
        return "".join([f"{self.model}-{self.ranks * self.loops}-{precision}{apart}",
                        *self.sum_options()])

    def sum_options(self):
        return VARIANTS[self.variant].sums if self.variant in VARIANTS else []

    def variant_options(self):
        if self.part == "ways":
            return WAYS[self.variant][1]
        return VARIANTS[self.variant].options + self.sum_options()

    def cut(self):
        """Programs of one cut give the same bits."""
        alone = VARIANTS[self.variant].alone
        return self.summed_as(self.precision) + (f"-{self.variant}" if alone else "")

    def reference(self, work):
        """What the CPU target made of the same cut."""
        name = self.summed_as(self.reference_precision).replace(":", "-")
        return os.path.join(work, "references", name + ".safetensors")

    def amplifies(self):
        return self.given or self.model in AMPLIFYING

    def saving(self, path):
        """Options of a training that make the file which is compared: the weights; of a
        given model, whose loss may be tiny, the gradients of the first step."""
        return ["--save", "none", "--dump-gradients", path] if self.given else ["--save", path]

    def compared_steps(self):
        """After how many steps the weights are compared with the CPU target's."""
        return 1 if self.amplifies() else STEPS

    def initial(self, work):
        return os.path.join(work, "references", self.model + ".initial.safetensors")

    def difference(self, work, found):
        """Of a file that `saving` made to the CPU target's, as `agreement` measures it."""
        found, expected = read_floats(found), read_floats(self.reference(work))
        if self.given:
            return worst_difference(found, expected)
        return worst_difference(found, expected, read_floats(self.initial(work)),
                                self.compared_steps())

    def allowed(self):
        return allowed(self.precision, 0 if self.given else self.compared_steps(),
                       self.own_difference, self.reference_precision)

    def model_options(self, models):
        """For `pipewright compile`, whatever the target."""
        if self.big:
            count, size, optimizer = self.big
            return [os.path.join(models, self.model + ".onnx"), "--loss", "softmax-cross-entropy",
                    "--micro-batches", str(count), "--micro-batch-size", str(size),
                    "--optimizer", optimizer, "--precision", self.precision]
        if self.given:
            return [os.path.join(models, self.model + ".onnx"), "--loss", "mse", "--no-dropout",
                    "--micro-batches", "4", "--micro-batch-size", "4"]
        count, size = (4, 8) if self.model in AMPLIFYING else (8, 2)
        options = [os.path.join(ROOT, "test/Inputs/models", self.model + ".onnx"),
                   "--micro-batches", str(count), "--micro-batch-size", str(size), "--no-dropout"]
        if self.model not in OWN_LOSS:
            options += ["--loss", "softmax-cross-entropy"]
        if self.model.startswith("gpt2_dynamic"):
            options += ["--dim", "seq=32"]
        return options

    def placement(self):
        return ["--ranks", str(self.ranks), "--loops", str(self.loops), "--schedule", self.schedule]


def agreement_programs(pipewright, models):
    folder = os.path.join(ROOT, "test/Inputs/models")
    for model in sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".onnx")):
        for ranks in (1, 2, 4):
            yield Program("agree", model, ranks, 1, "1f1b", "f32")
        for precision in ("tf32", "bf16") if model in EVERY_PRECISION else ():
            yield Program("agree", model, 2, 1, "1f1b", precision)
        for each in listed_schedules(pipewright) if model in EVERY_SCHEDULE else ():
            for ranks in (2, 4) if each.trains and each.name not in ("auto", "1f1b") else ():
                yield Program("agree", model, ranks, each.loops, each.name, "f32",
                              apart=each.alone)
        for variant in filter(None, VARIANTS) if model in VARIED else ():
            # Ranks with few stashes at a time have none that could leave.
            for ranks in (1, 2):
                yield Program("agree", model, ranks, 1, "gpipe" if variant == "offload" else "1f1b",
                              "f32", variant=variant)
            if "zero" in variant:
                yield Program("agree", model, 1, 3, "breadth-first", "f32", variant=variant)
    for model in sorted(name[:-5] for name in os.listdir(models) if name.endswith(".onnx")
                        ) if models else ():
        for precision in ("f32", "bf16") if model not in BIG else ():
            yield Program("agree", model, 1, 1, "1f1b", precision, given=True)


def big_programs(parts, models):
    """Of a set of parts."""
    for model, (shape, *_) in BIG.items():
        if not os.path.exists(os.path.join(models or "", model + ".onnx")):
            print(f"no {model}.onnx in {models or 'no --models FOLDER'}: not measured")
            continue
        if "speed" in parts:
            yield Program("speed", model, 1, 1, "1f1b", "bf16", shape)
        for way, (shape_of_way, *_) in WAYS.items() if model == OVERHEAD[0] else ():
            if "ways" in parts or ("counters" in parts and way == COUNTED_WAY):
                yield Program("ways", model, 1, 1, "1f1b", "bf16", shape_of_way, variant=way)
        if "overhead" in parts and model == OVERHEAD[0]:
            for ranks in (1, 4):
                yield Program("overhead", model, ranks, 1, "1f1b", "bf16", OVERHEAD[1])


def planned(pipewright, checks, models, match, share):
    """The programs of checks, which are parts with expressions."""
    programs, parts = [], {part for part, _ in checks}
    if not {"agree", "sanitize"}.isdisjoint(parts):
        programs += agreement_programs(pipewright, models)
    if not {"overhead", "speed", "ways", "counters"}.isdisjoint(parts):
        programs += big_programs(parts, models)
    programs = [program for program in programs
                if any(program.part == PROGRAMS_OF.get(part, part)
                       and re.search(expression, program.name) for part, expression in checks)]
    return chosen(programs, match, share)


def chosen(programs, match, share):
    """Those of a model stay together, so that its results on CPUs are made once."""
    part, parts = map(int, share.split("/"))
    return [program for program in programs if re.search(match, program.name)
            and zlib.crc32(program.model.encode()) % parts == part]
