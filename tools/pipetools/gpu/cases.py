"""The tests that the doubles of CUDA's libraries pass, as cases to run on the real ones: where a
case differs, a double promises what the library does not keep, or our calls ask for it."""

import os
import re
import shutil

from ..running import ROOT, Failure, call

TESTS = ("conformance/DriverConformanceTests", "conformance/CublasLtConformanceTests",
         "conformance/LocalLinksConformanceTests", "conformance/IpcLinksConformanceTests",
         "conformance/NcclLinksConformanceTests", "unit/cuda/kernels/DeviceKernelTests")
# What is true of the doubles alone has this in its name.
ALONE = "Double"


class Case:
    """One test. It runs in a process of its own: a fault on a GPU spoils what follows."""

    part = "libraries"
    precision = ""

    def __init__(self, path, name):
        self.path = path
        self.case = name
        self.model = os.path.basename(path)
        self.name = f"{self.model}: {name}"

    def run(self, environment, timeout):
        """Whether the libraries agree, and how they do not."""
        try:
            output = call([self.path, "--gtest_filter=" + self.case], "the case", environment,
                          timeout)
        except Failure as failure:
            found = re.findall(r": Failure\n((?:[^\[\s].*\n|  .*\n)+)", str(failure) + "\n")
            return "differs", ["differs: " + (" / ".join(found) or str(failure)).strip()]
        skipped = re.search(r": Skipped\n(.*)", output)
        return f"left out, {skipped.group(1)}" if skipped else "agrees", []


def copy_tests(work):
    folder = os.path.join(work, "tests")
    os.makedirs(folder)
    for test in TESTS:
        path = os.path.join(ROOT, "build/test", test)
        if not os.path.exists(path):
            raise Failure(f"libraries: expects {path}; build it with `ninja -C build`")
        shutil.copy(path, folder)


def listed_cases(work, environment):
    """All cases of the tests that were copied."""
    folder = os.path.join(work, "tests")
    for test in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path, suite = os.path.join(folder, test), ""
        try:
            output = call([path, "--gtest_list_tests"], "the test", environment)
        except Failure:
            # It does not start, which is what each of its cases would say.
            yield Case(path, "*")
            continue
        for line in output.splitlines():
            if re.fullmatch(r"[\w/]+\.(  #.*)?", line):
                suite = line.split()[0]
            elif line.startswith("  ") and ALONE not in suite + line:
                yield Case(path, suite + line.split()[0])
