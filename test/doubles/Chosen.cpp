//===- Chosen.cpp - Which of CUDA's libraries a test runs on --------------===//
//
// The runtime opens CUDA's libraries by their names. Before that, this opens
// those of a folder, which are found under their names from then on:
// PIPEWRIGHT_TEST_LIBRARIES, by default the test doubles. Where the variable is
// empty, the loader finds them: the real ones, on a machine that has them.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

static bool openLibraries() {
  const char *given = std::getenv("PIPEWRIGHT_TEST_LIBRARIES");
  const std::filesystem::path folder = given ? given : PIPEWRIGHT_DOUBLES;
  if (folder.empty())
    return true;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().find(".so.") != std::string::npos &&
        !dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL)) {
      std::fprintf(stderr, "error: %s\n", dlerror());
      std::exit(1);
    }
  if (!error)
    return true;
  std::fprintf(stderr,
               "error: PIPEWRIGHT_TEST_LIBRARIES expects a folder, but "
               "got '%s' (%s)\n",
               folder.c_str(), error.message().c_str());
  std::exit(1);
}

[[maybe_unused]] static const bool opened = openLibraries();
