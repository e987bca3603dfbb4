//===- UserFiles.cpp - What a new output folder takes over ----------------===//
//
// What is not listed in a manifest, or not as listed, is the user's: it is
// linked or moved, and never removed unless it is elsewhere under the same
// inode.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/UserFiles.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace pipewright::codegen {

static llvm::Error failure(const std::string &what, const std::string &path) {
  return llvm::createStringError("cannot " + what + " '" + path +
                                 "': " + std::strerror(errno));
}

static bool exists(const std::string &path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

static FileIdentity identityOf(const struct stat &status) {
  return {status.st_dev, status.st_ino};
}

/// A name beside the wanted one that nothing has, neither in the old folder nor
/// in the new one.
static std::string freeName(const std::string &old, const std::string &present,
                            const std::string &path) {
  std::string name = path + ".kept";
  for (int number = 2; exists(old + "/" + name) || exists(present + "/" + name);
       ++number)
    name = path + ".kept-" + std::to_string(number);
  return name;
}

/// The names in a folder, sorted.
static llvm::Expected<std::vector<std::string>>
namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error)
    return llvm::createStringError("cannot list '" + folder +
                                   "': " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// That of a folder; an empty one where it has none that we wrote.
static Manifest manifestOf(const std::string &folder, bool &has) {
  llvm::Expected<std::optional<Manifest>> manifest = Manifest::read(folder);
  if (!manifest)
    llvm::consumeError(manifest.takeError());
  has = manifest && *manifest;
  return has ? std::move(**manifest) : Manifest();
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

namespace {
class Search {
public:
  Search(const std::string &folder, const std::string &replacement)
      : folder(folder), replacement(replacement),
        manifest(manifestOf(folder, hasManifest)) {}

  /// What is in a subfolder ("" or "src/"), which goes to `target`.
  llvm::Error enter(const std::string &path, const std::string &target);

  std::vector<UserFile> found;

private:
  llvm::Error look(const std::string &path, const std::string &target);
  std::string placeFor(const std::string &target, bool isFolder) const;

  const std::string &folder, &replacement;
  bool hasManifest = false;
  const Manifest manifest;
};
} // namespace

llvm::Error Search::enter(const std::string &path, const std::string &target) {
  auto names = namesIn(folder + "/" + path);
  if (!names)
    return names.takeError();
  for (const std::string &name : *names)
    if (llvm::Error error = look(path + name, target + name))
      return error;
  return llvm::Error::success();
}

/// Where a file or folder goes that would be at `target` if nothing was there.
std::string Search::placeFor(const std::string &target, bool isFolder) const {
  struct stat there;
  if (replacement.empty() ||
      lstat((replacement + "/" + target).c_str(), &there) != 0 ||
      (isFolder && S_ISDIR(there.st_mode)))
    return target;
  return freeName(folder, replacement, target);
}

llvm::Error Search::look(const std::string &path, const std::string &target) {
  struct stat status;
  if (lstat((folder + "/" + path).c_str(), &status) != 0)
    return failure("read", folder + "/" + path);
  if (!S_ISDIR(status.st_mode)) {
    bool isListed = hasManifest && manifest.lists(path);
    if (!isListed || !manifest.matches(folder, path))
      found.push_back({path, placeFor(target, false), false, isListed});
    return llvm::Error::success();
  }
  std::string place = placeFor(target, true);
  size_t before = found.size();
  found.push_back({path, place, true});
  if (llvm::Error error = enter(path + "/", place + "/"))
    return error;
  // A folder of ours has nothing of the user's in it, but files of ours.
  std::error_code ignored;
  bool isEmpty = fs::is_empty(folder + "/" + path, ignored);
  if (found.size() == before + 1 && !isEmpty)
    found.pop_back();
  return llvm::Error::success();
}

llvm::Expected<std::vector<UserFile>>
findUserFiles(const std::string &folder, const std::string &replacement) {
  Search search(folder, replacement);
  if (llvm::Error error = search.enter("", ""))
    return error;
  return std::move(search.found);
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

/// Folders cannot be linked: a new one gets the mode of the old one.
static llvm::Error copyFolderItself(const std::string &from,
                                    const std::string &to) {
  struct stat status;
  if (lstat(from.c_str(), &status) != 0)
    return failure("read", from);
  if (mkdir(to.c_str(), 0700) != 0)
    return errno == EEXIST ? llvm::Error::success() : failure("make", to);
  // One that we may not write into would keep its files out.
  if (chmod(to.c_str(), (status.st_mode & 07777) | S_IRWXU) != 0)
    return failure("make", to);
  return llvm::Error::success();
}

llvm::Expected<std::set<FileIdentity>>
linkUserFiles(const std::vector<UserFile> &files, const std::string &folder,
              const std::string &replacement) {
  std::set<FileIdentity> linked;
  for (const UserFile &file : files) {
    std::string from = folder + "/" + file.path;
    std::string to = replacement + "/" + file.target;
    if (file.isFolder) {
      if (llvm::Error error = copyFolderItself(from, to))
        return error;
      continue;
    }
    struct stat status;
    if (link(from.c_str(), to.c_str()) == 0 && lstat(to.c_str(), &status) == 0)
      linked.insert(identityOf(status));
  }
  return linked;
}

//===----------------------------------------------------------------------===//
// What is left
//===----------------------------------------------------------------------===//

namespace {
class Clearing {
public:
  Clearing(const std::string &old, const std::string &present,
           const std::set<FileIdentity> &linked)
      : old(old), present(present), linked(linked),
        manifest(manifestOf(old, hasManifest)) {
    std::error_code error;
    fs::recursive_directory_iterator it(present, error), end;
    for (; !error && it != end; it.increment(error)) {
      struct stat status;
      if (lstat(it->path().c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
        there.insert(identityOf(status));
    }
  }

  llvm::Error run();

private:
  /// Removes what is in a subfolder ("" or "src/").
  llvm::Error clear(const std::string &path);
  llvm::Error clearFile(const std::string &path, const struct stat &status);

  const std::string &old, &present;
  const std::set<FileIdentity> &linked;
  std::set<FileIdentity> there;
  bool hasManifest = false;
  const Manifest manifest;
};
} // namespace

llvm::Error Clearing::clearFile(const std::string &path,
                                const struct stat &status) {
  std::string from = old + "/" + path;
  bool isOurs = hasManifest && manifest.matches(old, path);
  if (isOurs || there.count(identityOf(status)))
    return unlink(from.c_str()) == 0 || errno == ENOENT
               ? llvm::Error::success()
               : failure("remove", from);
  std::error_code error;
  fs::create_directories(fs::path(present + "/" + path).parent_path(), error);
  std::string target = path;
  struct stat other;
  // What was linked there is what this one has replaced.
  bool isNewer = lstat((present + "/" + path).c_str(), &other) == 0 &&
                 linked.count(identityOf(other));
  if (!isNewer && exists(present + "/" + path))
    target = freeName(old, present, path);
  std::string to = present + "/" + target;
  return rename(from.c_str(), to.c_str()) == 0 ? llvm::Error::success()
                                               : failure("move", from);
}

llvm::Error Clearing::clear(const std::string &path) {
  auto names = namesIn(old + "/" + path);
  if (!names)
    return names.takeError();
  for (const std::string &name : *names) {
    // Last of all: without it nothing would be known as ours.
    if (hasManifest && path.empty() && name == Manifest::fileName)
      continue;
    std::string inner = path + name, whole = old + "/" + inner;
    struct stat status;
    if (lstat(whole.c_str(), &status) != 0)
      continue;
    if (!S_ISDIR(status.st_mode)) {
      if (llvm::Error error = clearFile(inner, status))
        return error;
      continue;
    }
    if (access(whole.c_str(), W_OK | X_OK) != 0)
      chmod(whole.c_str(), (status.st_mode & 07777) | S_IRWXU);
    if (llvm::Error error = clear(inner + "/"))
      return error;
    if (rmdir(whole.c_str()) != 0 && errno != ENOENT)
      return failure("remove", whole);
  }
  return llvm::Error::success();
}

llvm::Error Clearing::run() {
  if (llvm::Error error = clear(""))
    return error;
  if (hasManifest)
    unlink((old + "/" + Manifest::fileName).c_str());
  return rmdir(old.c_str()) == 0 || errno == ENOENT ? llvm::Error::success()
                                                    : failure("remove", old);
}

llvm::Error moveRest(const std::string &old, const std::string &present,
                     const std::set<FileIdentity> &linked) {
  return Clearing(old, present, linked).run();
}

} // namespace pipewright::codegen
