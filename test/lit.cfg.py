# How Pipewright's tests are found and run: FileCheck tests (.mlir, .test),
# unit tests (gtest) and transport conformance, all by one lit call.

import os
import platform
import shutil
import sys

from lit.llvm import llvm_config

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
from cpu_time import TimedShTest
from pipetools.processor import cpu_has_bf16

config.name = "Pipewright"
config.test_format = TimedShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "conformance"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.pipewright_obj_root, "test")

config.environment["FILECHECK_OPTS"] = "--enable-var-scope"
# Open MPI refuses root and too many ranks unless told otherwise.
for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
    config.environment[name] = "1"
config.environment["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
# Every rank of a test runs one thread, whatever the machine has.
config.environment["OMP_NUM_THREADS"] = "1"
# Programs of tests are compiled once and kept: their kernels by pipewright, their C++ by
# ccache. Both know again what was compiled from the same text.
config.environment["HOME"] = os.path.expanduser("~")
for name in ("PIPEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME", "CCACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if shutil.which("ccache"):
    config.environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    config.environment["CCACHE_PCH_EXTSUM"] = "1"
    config.environment["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
# PIPEWRIGHT_FULL_TESTS=1 runs long matrices whole, not samples of them: hours.
lit_config.maxIndividualTestTime = 14400 if "PIPEWRIGHT_FULL_TESTS" in os.environ else 600
for name in ("LLVM_PROFILE_FILE", "PIPEWRIGHT_FULL_TESTS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# PIPEWRIGHT_OPT_ARGS=--verify-roundtrip makes every test a round trip.
opt_arguments = os.environ.get("PIPEWRIGHT_OPT_ARGS", "").split()

for directory in [
    config.llvm_tools_dir,
    os.path.join(config.pipewright_obj_root, "tools", "pipewright"),
    os.path.join(config.pipewright_obj_root, "tools", "pipewright-opt"),
    os.path.join(config.pipewright_obj_root, "tools", "pipewright-import"),
    os.path.join(config.pipewright_obj_root, "tools", "pipewright-lsp-server"),
    os.path.join(config.pipewright_obj_root, "test", "fuzz"),
    os.path.join(config.pipewright_obj_root, "test", "tools"),
    os.path.join(config.pipewright_src_root, "test", "tools"),
]:
    config.environment["PATH"] = os.path.pathsep.join(
        (directory, config.environment["PATH"])
    )

config.substitutions.append(("%inputs", os.path.join(config.test_source_root, "Inputs")))
config.substitutions.append(("%models", os.path.join(config.test_source_root, "Inputs", "models")))
config.substitutions.append(("%build", config.pipewright_obj_root))
config.substitutions.append(("%source", os.path.dirname(config.test_source_root)))
if opt_arguments:
    config.substitutions.append(
        (r"\bpipewright-opt\b", "pipewright-opt " + " ".join(opt_arguments))
    )

# Shared objects with the names of CUDA's libraries that run on the CPU:
# `env LD_LIBRARY_PATH=%doubles OUT/train` runs a GPU program without a GPU.
doubles = os.path.join(config.pipewright_obj_root, "test", "doubles")
config.substitutions.append(("%doubles", doubles))
if os.path.exists(os.path.join(doubles, "libcuda.so.1")):
    config.available_features.add("cuda")
for folder in (
    os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"),
    os.path.join(config.pipewright_obj_root, "cuda", "bin"),
    None,
):
    ptxas = shutil.which("ptxas", path=folder)
    if ptxas:
        config.available_features.add("ptxas")
        config.substitutions.append(("%ptxas", ptxas))
        break
if platform.machine() == "x86_64":
    config.available_features.add("x86_64")


if cpu_has_bf16():
    config.available_features.add("cpu-bf16")
# The script of pages runs without a browser (tools/read-page).
if shutil.which("node"):
    config.available_features.add("nodejs")
# test/tools/mpirun runs it.
mpirun = shutil.which("mpirun")
if mpirun:
    config.environment["PIPEWRIGHT_MPIRUN"] = mpirun
    config.available_features.add("mpi")
# The ONNX project's own models are not ours to copy: tests that read them run
# only where a checkout has them.
light = os.path.join(config.pipewright_src_root, "..", "shared", "onnx", "light")
if os.path.isdir(light):
    config.available_features.add("light-models")
    config.substitutions.append(("%light", os.path.realpath(light)))
