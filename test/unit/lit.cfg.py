# Unit tests: every gtest executable below the build folder, one lit test per
# shard.

import os

import lit.formats

config.name = "Pipewright-Unit"
config.suffixes = []
config.test_source_root = os.path.join(config.pipewright_obj_root, "test")
config.test_exec_root = config.test_source_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.environment["OMP_NUM_THREADS"] = "1"
for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
    config.environment[name] = "1"
for name in ("PATH", "HOME", "LLVM_PROFILE_FILE"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
