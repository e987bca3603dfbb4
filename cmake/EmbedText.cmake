# Writes a C++ file that defines the texts of files as constants. The build runs
# it as a script:
#
#   cmake -D HEADER=a/b.h -D "CONSTANTS=space::name=FILE;..." -D OUTPUT=b.cpp -P EmbedText.cmake
#
# HEADER declares the constants, as `extern const char *const name`.
set(text "// Made of files by cmake/EmbedText.cmake.\n\n#include \"${HEADER}\"\n")
foreach(constant IN LISTS CONSTANTS)
  string(REGEX MATCH "^(.+)=(.+)$" matched "${constant}")
  file(READ "${CMAKE_MATCH_2}" content)
  string(FIND "${content}" ")text\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${CMAKE_MATCH_2} has the end of a raw string")
  endif()
  string(APPEND text "\nconst char *const ${CMAKE_MATCH_1} = R\"text(${content})text\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
