# cmake -DSOURCE=DIR -DOUTPUT=FILE -P Commit.cmake
# Writes the commit of a source tree as a macro, and touches the file only where
# it changes, so that nothing is compiled again for nothing. Called by each build.
set(commit "no repository")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${git}" -C "${SOURCE}" describe --always --dirty --abbrev=12
    --exclude=* OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE code ERROR_QUIET)
  if(code EQUAL 0)
    set(commit "commit ${found}")
  endif()
endif()
set(text "#define PIPEWRIGHT_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
