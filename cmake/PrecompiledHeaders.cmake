# pipewright_add_pch(NAME HEADER [EXECUTABLES] [OPTIONS flags...]
#                    [DEPENDS targets...] [LINK libs...])
# A precompiled header that targets with the same libraries and flags reuse:
# libraries, or with EXECUTABLES executables, which are position-independent in
# another way. Parsing what these hold takes longer than compiling most of our
# files; every file still includes what it uses, since the gcc preset may do
# without. HEADER is an absolute path.
#
# ccache hashes the precompiled header for each file, tens of megabytes, unless a
# file with its name and .sum is there to be hashed instead (CCACHE_PCH_EXTSUM).
# The target NAMESum makes that from the preprocessed text, which is the same
# wherever the source tree stands.
function(pipewright_add_pch name header)
  cmake_parse_arguments(ARG "EXECUTABLES" "" "OPTIONS;DEPENDS;LINK" ${ARGN})
  set(source "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "")
  endif()
  add_library(${name} STATIC "${source}")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  if(ARG_EXECUTABLES)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)
  endif()
  target_precompile_headers(${name} PRIVATE "${header}")
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
    set(definitions "$<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>")
    set(folders "$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>")
    add_custom_command(OUTPUT "${sum}" DEPENDS "${pch}" COMMENT ""
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/pch" COMMAND_EXPAND_LISTS
      COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 ${flags}
        "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/="
        "$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>"
        "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
        "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>"
        -E -dD -P -x c++-header "${header}" -o ${text}
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
