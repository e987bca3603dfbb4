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

# pipewright_add_pch(NAME HEADER [DEPENDS targets...] [LINK libs...])
# A precompiled header that targets with the same libraries reuse. Parsing what
# these hold takes longer than compiling most of our files; every file still
# includes what it uses, since the gcc preset may do without.
#
# ccache hashes the precompiled header for each file, tens of megabytes, unless a
# file with its name and .sum is there to be hashed instead (CCACHE_PCH_EXTSUM).
# The target NAMESum makes that from the preprocessed text, which is the same
# wherever the source tree stands.
function(pipewright_add_pch name header)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  set(source "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "")
  endif()
  add_library(${name} STATIC "${source}")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/pch/${header}")
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set(sum)
  # Other generators cannot depend on an output of another target's.
  if(CMAKE_GENERATOR STREQUAL "Ninja" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(pch "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch")
    set(sum "${pch}.sum")
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
    set(text ${name}.txt)
    add_custom_command(OUTPUT "${sum}" DEPENDS "${pch}" COMMENT ""
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/pch" COMMAND_EXPAND_LISTS
      COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 ${flags}
        "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/="
        "$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>"
        "-D$<JOIN:$<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>,;-D>"
        "-I$<JOIN:$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>,;-I>"
        -E -dD -P -x c++-header "${PROJECT_SOURCE_DIR}/cmake/pch/${header}" -o ${text}
      COMMAND "${CMAKE_COMMAND}" -E sha256sum ${text} > "${sum}"
      COMMAND "${CMAKE_COMMAND}" -E rm ${text})
  endif()
  add_custom_target(${name}Sum DEPENDS ${sum})
  add_dependencies(${name}Sum ${name})
endfunction()

# Takes the precompiled header of another target.
function(pipewright_reuse_pch name from)
  target_precompile_headers(${name} REUSE_FROM ${from})
  add_dependencies(${name} ${from}Sum)
endfunction()

# What is precompiled, from few headers to many: MLIR alone for the dialects and
# the pure code beside them, our dialects for passes, MLIR's dialects below them
# for kernels.
pipewright_add_pch(PipewrightMlirPch Mlir.h LINK PipewrightCompile)
pipewright_add_pch(PipewrightDialectsPch Dialects.h LINK PipewrightCompile
  DEPENDS PipewrightNNIncGen PipewrightPipeIncGen)
pipewright_add_pch(PipewrightKernelsPch Kernels.h LINK PipewrightCompile
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
