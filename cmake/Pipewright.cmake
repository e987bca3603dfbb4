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

file(WRITE ${PROJECT_BINARY_DIR}/pch.cpp "")
add_library(PipewrightPch STATIC ${PROJECT_BINARY_DIR}/pch.cpp)
target_link_libraries(PipewrightPch PUBLIC PipewrightCompile)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # ccache can only reuse objects built on a PCH whose content is reproducible.
  target_compile_options(PipewrightCompile INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()
target_precompile_headers(PipewrightPch PUBLIC ${PROJECT_SOURCE_DIR}/cmake/Pch.h)

# pipewright_add_library(NAME sources... [DEPENDS targets...] [LINK libs...])
# A static library of the compiler. DEPENDS names the TableGen targets whose
# headers the sources include.
function(pipewright_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC PipewrightCompile ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM PipewrightPch)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
