//===- failing-calls.cpp - System calls that fail, one by one --*- C++ -*-===//
//
// A library for LD_PRELOAD. Of a program's calls on files of one folder it
// numbers those between two names, and lets one of them fail:
//
//   FAILING_CALLS_IN=FOLDER:FROM:UNTIL   numbers calls from the first one with
//                                        FROM in its path to that with UNTIL
//   FAILING_CALLS=N:KIND                 what becomes of number N (from 0):
//     kill         the process ends before it
//     ENOSPC, EIO  it fails
//     full         so do it and all later ones that need room on the disk,
//                  those behind UNTIL too
//     short        writes half of what it was given
//   FAILING_CALLS_LOG=FILE               gets the name of each numbered call
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

/// What the variables ask for.
struct Orders {
  std::string folder, from, until, kind;
  long number = -1;
  int log = -1;

  Orders() {
    const char *in = getenv("FAILING_CALLS_IN");
    if (!in)
      return;
    folder = in;
    const size_t second = folder.rfind(':'),
                 first = folder.rfind(':', second - 1);
    until = folder.substr(second + 1);
    from = folder.substr(first + 1, second - first - 1);
    folder.resize(first);
    if (const char *what = getenv("FAILING_CALLS")) {
      number = atol(what);
      kind = strchr(what, ':') + 1;
    }
    if (const char *path = getenv("FAILING_CALLS_LOG"))
      log = creat(path, 0666);
  }
};

const Orders &orders() {
  static const Orders all;
  return all;
}

/// Whether a descriptor is of the folder.
constexpr int maxDescriptors = 4096;
std::atomic<bool> ours[maxDescriptors];
std::atomic<bool> began, ended;
std::atomic<long> calls;

bool isOurs(int descriptor) {
  return descriptor >= 0 && descriptor < maxDescriptors && ours[descriptor];
}

bool isInside(int folder, const char *path) {
  const std::string &wanted = orders().folder;
  if (wanted.empty())
    return false;
  if (!strstr(path, wanted.c_str()))
    return path[0] != '/' && isOurs(folder);
  began = began || strstr(path, orders().from.c_str());
  ended = ended || (began && strstr(path, orders().until.c_str()));
  return true;
}

void mark(int descriptor, bool value) {
  if (descriptor >= 0 && descriptor < maxDescriptors)
    ours[descriptor] = value;
}

template <class Function>
Function *next(Function *, const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

enum class Fate { Done, Refused, Short };

/// Of a call that counts. `grows`: it needs room on the disk.
Fate fateOf(const char *name, bool grows) {
  const Orders &all = orders();
  const bool isFull = all.kind == "full" && calls > all.number && grows;
  if (!began || (ended && !isFull))
    return Fate::Done;
  const long number = calls++;
  if (all.log >= 0)
    dprintf(all.log, "%s\n", name);
  if (all.number < 0 || (number != all.number && !isFull))
    return Fate::Done;
  if (all.kind == "kill")
    kill(getpid(), SIGKILL);
  if (all.kind == "short")
    return Fate::Short;
  if (all.kind == "full" && !grows)
    return Fate::Done;
  errno = all.kind == "EIO" ? EIO : ENOSPC;
  return Fate::Refused;
}

template <class Open>
int openOne(const char *name, int folder, const char *path, int flags,
            const Open &open) {
  const bool isCounted = isInside(folder, path);
  if (isCounted && fateOf(name, flags & O_CREAT) == Fate::Refused)
    return -1;
  const int descriptor = open();
  mark(descriptor, isCounted);
  return descriptor;
}

/// A call of a path or a descriptor whose result is 0 or -1.
template <class Call>
int callOne(const char *name, bool isCounted, bool grows, const Call &call) {
  if (isCounted && fateOf(name, grows) == Fate::Refused)
    return -1;
  return call();
}

mode_t modeOf(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

} // namespace

#define NEXT(NAME) next(&NAME, #NAME)
#define MODE(FLAGS)                                                            \
  va_list arguments;                                                           \
  va_start(arguments, FLAGS);                                                  \
  const mode_t mode = modeOf(FLAGS, arguments);                                \
  va_end(arguments)

extern "C" {

int open(const char *path, int flags, ...) {
  MODE(flags);
  return openOne("open", AT_FDCWD, path, flags,
                 [&] { return NEXT(open)(path, flags, mode); });
}

int open64(const char *path, int flags, ...) {
  MODE(flags);
  return openOne("open", AT_FDCWD, path, flags,
                 [&] { return NEXT(open64)(path, flags, mode); });
}

int openat(int folder, const char *path, int flags, ...) {
  MODE(flags);
  return openOne("openat", folder, path, flags,
                 [&] { return NEXT(openat)(folder, path, flags, mode); });
}

int openat64(int folder, const char *path, int flags, ...) {
  MODE(flags);
  return openOne("openat", folder, path, flags,
                 [&] { return NEXT(openat64)(folder, path, flags, mode); });
}

DIR *opendir(const char *path) {
  const bool isCounted = isInside(AT_FDCWD, path);
  if (isCounted && fateOf("opendir", false) == Fate::Refused)
    return nullptr;
  DIR *entries = NEXT(opendir)(path);
  if (entries)
    mark(dirfd(entries), isCounted);
  return entries;
}

int closedir(DIR *entries) {
  mark(dirfd(entries), false);
  return NEXT(closedir)(entries);
}

ssize_t write(int file, const void *data, size_t bytes) {
  const Fate fate = isOurs(file) ? fateOf("write", true) : Fate::Done;
  if (fate == Fate::Refused)
    return -1;
  return NEXT(write)(file, data,
                     fate == Fate::Short ? bytes - bytes / 2 : bytes);
}

int fsync(int file) {
  return callOne("fsync", isOurs(file), true,
                 [&] { return NEXT(fsync)(file); });
}

/// Closes in any case, as Linux does.
int close(int file) {
  const bool isCounted = isOurs(file);
  mark(file, false);
  const bool isRefused = isCounted && fateOf("close", false) == Fate::Refused;
  const int why = errno;
  const int result = NEXT(close)(file);
  errno = isRefused ? why : errno;
  return isRefused ? -1 : result;
}

int mkdir(const char *path, mode_t mode) {
  return callOne("mkdir", isInside(AT_FDCWD, path), true,
                 [&] { return NEXT(mkdir)(path, mode); });
}

int rename(const char *from, const char *to) {
  return callOne("rename", isInside(AT_FDCWD, from) | isInside(AT_FDCWD, to),
                 true, [&] { return NEXT(rename)(from, to); });
}

int unlink(const char *path) {
  return callOne("unlink", isInside(AT_FDCWD, path), false,
                 [&] { return NEXT(unlink)(path); });
}

int unlinkat(int folder, const char *path, int flags) {
  return callOne("unlinkat", isInside(folder, path), false,
                 [&] { return NEXT(unlinkat)(folder, path, flags); });
}

int rmdir(const char *path) {
  return callOne("rmdir", isInside(AT_FDCWD, path), false,
                 [&] { return NEXT(rmdir)(path); });
}

int remove(const char *path) {
  return callOne("remove", isInside(AT_FDCWD, path), false,
                 [&] { return NEXT(remove)(path); });
}

int stat(const char *path, struct stat *status) {
  return callOne("stat", isInside(AT_FDCWD, path), false,
                 [&] { return NEXT(stat)(path, status); });
}

int fstat(int file, struct stat *status) {
  return callOne("fstat", isOurs(file), false,
                 [&] { return NEXT(fstat)(file, status); });
}

int flock(int file, int operation) {
  return callOne("flock", isOurs(file), false,
                 [&] { return NEXT(flock)(file, operation); });
}

int fchmod(int file, mode_t mode) {
  return callOne("fchmod", isOurs(file), false,
                 [&] { return NEXT(fchmod)(file, mode); });
}
}
