//===- PartialFolder.cpp - Where unfinished work lies ---------------------===//

#include "codegen/package/PartialFolder.h"

#include "codegen/package/Interruption.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

namespace pipewright::codegen {

static constexpr size_t randomCharacters = 6;
/// In the lock, so that nothing is removed that only has a name like ours.
static constexpr llvm::StringRef mark = "unfinished work of pipewright\n";

/// A lock that nobody else has, on the file that is there now; -1 without.
static int takeLock(const std::string &folder, int flags) {
  std::string path = folder + "/" + lockName;
  int lock = open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0)
    return -1;
  struct stat held, present;
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &held) == 0 &&
      stat(path.c_str(), &present) == 0 && held.st_ino == present.st_ino &&
      held.st_dev == present.st_dev)
    return lock;
  close(lock);
  return -1;
}

llvm::Expected<PartialFolder>
PartialFolder::createTemporary(llvm::StringRef name) {
  llvm::SmallString<128> prefix;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, prefix);
  llvm::sys::path::append(prefix, name);
  removeDead(prefix, [](const std::string &) { return true; });
  llvm::Expected<PartialFolder> folder = create(prefix);
  if (!folder)
    return llvm::createStringError(
        "cannot make a temporary folder '" + prefix +
        "...': " + llvm::toString(folder.takeError()));
  return folder;
}

llvm::Expected<PartialFolder> PartialFolder::create(llvm::StringRef prefix) {
  // Between the two steps another process may take the folder for one that was
  // left behind.
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::string name = prefix.str() + std::string(randomCharacters, 'X');
    if (!mkdtemp(name.data()))
      return llvm::createStringError(std::strerror(errno));
    nameFolder(name);
    int lock = takeLock(name, O_CREAT | O_EXCL);
    if (lock >= 0 && ::write(lock, mark.data(), mark.size()) ==
                         static_cast<ssize_t>(mark.size()))
      return PartialFolder(std::move(name), lock);
    int reason = errno;
    if (lock >= 0)
      close(lock);
    removeTree(name.c_str());
    forgetFolder(name);
    if (lock >= 0)
      return llvm::createStringError(std::strerror(reason));
  }
  return llvm::createStringError("a file in it cannot be locked");
}

PartialFolder::PartialFolder(PartialFolder &&other)
    : name(std::move(other.name)), lock(other.lock), isKept(other.isKept) {
  other.name.clear();
}

void PartialFolder::setKept(bool kept) {
  isKept = kept;
  if (kept)
    forgetFolder(name);
  else
    nameFolder(name);
}

PartialFolder::~PartialFolder() {
  if (name.empty())
    return;
  if (!isKept)
    removeTree(name.c_str());
  forgetFolder(name);
  close(lock);
}

/// Whether a name is a prefix and as many characters as we draw.
static bool isNamedSo(llvm::StringRef name, llvm::StringRef prefix) {
  return name.consume_front(prefix) && name.size() == randomCharacters &&
         llvm::all_of(name, llvm::isAlnum);
}

static bool hasMark(int lock) {
  char text[64];
  ssize_t bytes = pread(lock, text, sizeof text, 0);
  return bytes >= 0 && llvm::StringRef(text, bytes) == mark;
}

static void removeIfDead(const std::string &path,
                         llvm::function_ref<bool(const std::string &)> rescue) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid())
    return;
  int lock = takeLock(path, 0);
  if (lock < 0) {
    // One that died before it made the lock is empty; others stay.
    rmdir(path.c_str());
    return;
  }
  if (hasMark(lock)) {
    if (rescue(path))
      removeTree(path.c_str());
  } else if (fstat(lock, &status) == 0 && status.st_size == 0 &&
             fs::directory_iterator(path) != fs::directory_iterator() &&
             ++fs::directory_iterator(path) == fs::directory_iterator()) {
    // It died before it wrote the mark: the lock is all there is.
    removeTree(path.c_str());
  }
  close(lock);
}

void PartialFolder::removeDead(
    llvm::StringRef prefix,
    llvm::function_ref<bool(const std::string &)> rescue) {
  fs::path wanted(prefix.str());
  std::vector<std::string> found;
  std::error_code error;
  fs::directory_iterator it(wanted.parent_path(), error), end;
  for (; !error && it != end; it.increment(error))
    if (isNamedSo(it->path().filename().string(), wanted.filename().string()))
      found.push_back(it->path().string());
  for (const std::string &path : found)
    removeIfDead(path, rescue);
}

} // namespace pipewright::codegen
