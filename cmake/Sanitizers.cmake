# Sanitizers for all that is built here: the presets `asan` and `tsan` set these.
# Libraries of the system (MLIR, oneDNN, MPI, libgomp) are never instrumented.

set(PIPEWRIGHT_SANITIZE "" CACHE STRING
  "Sanitizers of the compiler, as for -fsanitize=")
option(PIPEWRIGHT_FUZZ "Link fuzz targets with libFuzzer (clang)" OFF)

set(PIPEWRIGHT_SANITIZE_FLAGS)
if(PIPEWRIGHT_SANITIZE)
  # MLIR's classes have no type information for -fsanitize=vptr to read.
  set(PIPEWRIGHT_SANITIZE_FLAGS -fsanitize=${PIPEWRIGHT_SANITIZE}
    -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer
    -gline-tables-only)
endif()
add_compile_options(${PIPEWRIGHT_SANITIZE_FLAGS})
add_link_options(${PIPEWRIGHT_SANITIZE_FLAGS})
if(PIPEWRIGHT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
