# How every compiler-side library of Pipewright is built: against the shared
# libMLIR and libLLVM, with one precompiled header for the MLIR headers that
# nearly every file includes.

separate_arguments(PIPEWRIGHT_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
option(PIPEWRIGHT_COVERAGE "Instrument for clang's source-based coverage" OFF)

# Compile settings shared by all compiler-side targets. MLIR's headers are
# SYSTEM so that only our own code is held to our warnings.
add_library(PipewrightCompile INTERFACE)
target_include_directories(PipewrightCompile SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(PipewrightCompile INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(PipewrightCompile INTERFACE ${PIPEWRIGHT_LLVM_DEFINITIONS})
target_compile_options(PipewrightCompile INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Werror=deprecated-declarations)
# Never MLIR's static archives beside the shared library: TypeIDs would exist
# twice. The imported MLIR target has no link interface, so LLVM is named too.
target_link_libraries(PipewrightCompile INTERFACE MLIR LLVM)

# What is precompiled, from few headers to many: MLIR alone for the dialects and
# the pure code beside them, our dialects for passes, MLIR's dialects below them
# for kernels.
pipewright_add_pch(PipewrightMlirPch "${PROJECT_SOURCE_DIR}/cmake/pch/Mlir.h" LINK PipewrightCompile)
pipewright_add_pch(PipewrightDialectsPch "${PROJECT_SOURCE_DIR}/cmake/pch/Dialects.h" LINK PipewrightCompile
  DEPENDS PipewrightNNIncGen PipewrightPipeIncGen)
pipewright_add_pch(PipewrightKernelsPch "${PROJECT_SOURCE_DIR}/cmake/pch/Kernels.h" LINK PipewrightCompile
  DEPENDS PipewrightNNIncGen)

# pipewright_add_library(NAME sources... [PCH target] [DEPENDS targets...]
#                        [LINK libs...])
# A static library of the compiler. PCH names the precompiled header, DEPENDS
# the TableGen targets whose headers the sources include.
function(pipewright_add_library name)
  cmake_parse_arguments(ARG "" "PCH" "DEPENDS;LINK" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH PipewrightMlirPch)
  endif()
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC PipewrightCompile ${ARG_LINK})
  pipewright_reuse_pch(${name} ${ARG_PCH})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
