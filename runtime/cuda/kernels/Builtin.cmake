# The builtin kernels of GPU programs, as PTX text inside of the runtime. clang
# compiles them, and needs nothing of CUDA for it. Where NAME.ptx lies beside
# NAME.cu already, as in the folder of a generated program, no clang is needed.
enable_language(ASM)

set(builtin_flags
  -x cuda --cuda-device-only -nocudainc -nocudalib -ffreestanding -S
  --cuda-gpu-arch=sm_80 --cuda-feature=+ptx78 -Wno-unknown-cuda-version
  -std=c++20 -O3 -Wall -Wextra)
set(builtin_files)
set(builtin_definitions)
foreach(name Builtin Attention)
  set(ptx "${CMAKE_CURRENT_LIST_DIR}/${name}.ptx")
  if(NOT EXISTS "${ptx}")
    find_program(PIPEWRIGHT_CUDA_CLANG NAMES clang++-22 clang++ REQUIRED)
    set(source "${CMAKE_CURRENT_LIST_DIR}/${name}.cu")
    set(ptx "${CMAKE_CURRENT_BINARY_DIR}/cuda/kernels/${name}.ptx")
    file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cuda/kernels")
    add_custom_command(
      OUTPUT "${ptx}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${PIPEWRIGHT_CUDA_CLANG}" ${builtin_flags} "-I${root}"
              -MD -MF "${ptx}.d" "${source}" -o "${ptx}"
      DEPENDS "${source}"
      DEPFILE "${ptx}.d"
      COMMENT "Compiling ${name}.cu to PTX"
      VERBATIM)
  endif()
  string(TOUPPER "${name}" upper)
  list(APPEND builtin_files "${ptx}")
  list(APPEND builtin_definitions "PIPEWRIGHT_${upper}_PTX=\"${ptx}\"")
endforeach()

set_source_files_properties(cuda/kernels/Builtin.S PROPERTIES
  COMPILE_DEFINITIONS "${builtin_definitions}"
  OBJECT_DEPENDS "${builtin_files}")
target_sources(pipewright_runtime PRIVATE cuda/kernels/Builtin.S)
