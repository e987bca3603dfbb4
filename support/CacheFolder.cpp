//===- CacheFolder.cpp - Where what is made once is kept ------------------===//

#include "support/CacheFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

using namespace pipewright;

/// Whether a path is a folder that nobody else writes to.
static bool isOurFolder(const char *path, bool followsLinks) {
  struct stat status;
  int result = followsLinks ? stat(path, &status) : lstat(path, &status);
  return result == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         !(status.st_mode & (S_IWGRP | S_IWOTH));
}

std::string pipewright::cacheFolder(llvm::StringRef part) {
  llvm::SmallString<128> folder;
  if (const char *given = std::getenv("PIPEWRIGHT_CACHE_DIR"))
    folder = given;
  else if (llvm::sys::path::cache_directory(folder))
    llvm::sys::path::append(folder, "pipewright");
  if (folder.empty() ||
      llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true,
                                        llvm::sys::fs::perms::owner_all) ||
      !isOurFolder(folder.c_str(), /*followsLinks=*/true))
    return {};
  llvm::sys::path::append(folder, part);
  if (llvm::sys::fs::create_directory(folder, /*IgnoreExisting=*/true,
                                      llvm::sys::fs::perms::owner_all) ||
      !isOurFolder(folder.c_str(), /*followsLinks=*/false))
    return {};
  return folder.str().str();
}
