//===- AtomicFile.cpp - All of a file, or nothing -------------------------===//
//
// The process that writes a temporary file holds a lock on it, by which others
// know it from one that was left behind.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/AtomicFile.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace pipewright::runtime;

static constexpr size_t randomCharacters = 6;
static constexpr std::string_view infix = ".saving-";

/// A device or a pipe: renaming a file over it would destroy it.
static bool isSpecial(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
}

/// "" for the folder that one stands in, else with a '/' at its end.
static std::string folderOf(const std::string &path) {
  return path.substr(0, path.rfind('/') + 1);
}

/// What the path leads to, link by link; it need not be there.
static std::string followLinks(std::string path) {
  for (int links = 0; links < 40; ++links) {
    char text[4096];
    const ssize_t length = readlink(path.c_str(), text, sizeof text);
    if (length < 0)
      return path;
    const std::string to(text, length);
    path = to.rfind('/', 0) == 0 ? to : folderOf(path) + to;
  }
  fail("cannot write '", path, "': ", strerror(ELOOP));
}

static std::string randomName() {
  static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char bytes[randomCharacters];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    fail("cannot get random numbers: ", strerror(errno));
  std::string name;
  for (const unsigned char byte : bytes)
    name += letters[byte % (sizeof letters - 1)];
  return name;
}

/// Removes a file if no process has it locked.
static void removeIfDead(const std::string &path) {
  // Never waits, if it is a pipe, and never follows a link.
  const int file =
      open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_uid == geteuid() && flock(file, LOCK_EX | LOCK_NB) == 0)
    unlink(path.c_str());
  close(file);
}

/// What processes have left that were killed while they wrote this file.
static void removeDead(const std::string &target) {
  const std::string folder = folderOf(target);
  const std::string prefix = target.substr(folder.size()) + std::string(infix);
  DIR *entries = opendir(folder.empty() ? "." : folder.c_str());
  if (!entries)
    return;
  std::vector<std::string> found;
  while (const dirent *entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name.size() == prefix.size() + randomCharacters &&
        name.substr(0, prefix.size()) == prefix)
      found.push_back(folder + entry->d_name);
  }
  closedir(entries);
  for (const std::string &path : found)
    removeIfDead(path);
}

/// A link, or what is no file.
static bool isNoRegularFile(const std::string &path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

AtomicFile::AtomicFile(std::string path, Target what)
    : given(std::move(path)), inPlace(what == Target::Any && isSpecial(given)),
      target(inPlace || what != Target::Any ? given : followLinks(given)) {
  struct stat status;
  if (what == Target::RegularFile && isNoRegularFile(target))
    fail("cannot write '", given, "': it is there, and not a regular file");
  if (stat(target.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    fail("cannot write '", given, "': it is a folder");
  if (inPlace)
    openInPlace();
  else
    openTemporary();
}

void AtomicFile::openInPlace() {
  // A pipe that nobody reads would wait for ever.
  descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    failNow("cannot write");
  fcntl(descriptor, F_SETFL, O_WRONLY);
}

void AtomicFile::openTemporary() {
  removeDead(target);
  for (int attempt = 0; attempt < 10; ++attempt) {
    temporary = target + std::string(infix) + randomName();
    descriptor = open(temporary.c_str(),
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST)
      continue;
    if (descriptor < 0)
      failNow("cannot write");
    // Another process may have taken it for one that was left, before that.
    struct stat status;
    flock(descriptor, LOCK_EX | LOCK_NB);
    if (fstat(descriptor, &status) == 0 && status.st_nlink > 0) {
      // Who may read the older file may read this one.
      if (stat(target.c_str(), &status) == 0)
        fchmod(descriptor, status.st_mode & 0777);
      return;
    }
    close(std::exchange(descriptor, -1));
  }
  fail("cannot write '", given, "': no temporary file stays beside it");
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  if (!inPlace)
    unlink(temporary.c_str());
  close(descriptor);
}

void AtomicFile::failNow(const char *what) {
  fail(what, " '", given, "': ", strerror(errno));
}

/// Written to the file before the disk is told.
static constexpr size_t behindBytes = 16 << 20;

void AtomicFile::write(const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes) {
    const ssize_t written = ::write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      failNow("cannot write");
    at += written;
    bytes -= written;
    waiting += written;
  }
  // The disk begins early, so that `commit` has less to wait for, and pages
  // that wait do not fill the memory.
  if (waiting < behindBytes || inPlace)
    return;
  sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
  waiting = 0;
}

/// The name is only on the disk when the folder is.
static void synchronizeFolder(const std::string &path) {
  const std::string folder = folderOf(path);
  const int descriptor = open(folder.empty() ? "." : folder.c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

void AtomicFile::commit() {
  // Some file systems tell of a full disk only here.
  if (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
    failNow("cannot write");
  // Renamed while it is locked: to others it is never one that was left.
  if (!inPlace && rename(temporary.c_str(), target.c_str()) != 0)
    failNow("cannot write");
  const bool closed = close(std::exchange(descriptor, -1)) == 0;
  if (!closed && inPlace)
    failNow("cannot write");
  if (!inPlace)
    synchronizeFolder(target);
}
