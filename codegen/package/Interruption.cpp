//===- Interruption.cpp - Ctrl-C and kill clean up ------------------------===//
//
// All of it happens in the signal handler, which may run while any thread is
// anywhere: so there is no allocation, no lock, and fixed places for what is to
// be cleaned up.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Interruption.h"

#include "llvm/Support/Signals.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Removal
//===----------------------------------------------------------------------===//

/// readdir(3) allocates, so the entries come from the kernel itself. Leaves the
/// entry `last`, if given.
static bool emptyFolder(int folder, const char *last = nullptr) {
  alignas(dirent64) char buffer[4096];
  bool isEmpty = true;
  for (;;) {
    long bytes = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (bytes < 0)
      return false;
    if (bytes == 0)
      return isEmpty;
    for (long at = 0; at < bytes;) {
      const auto *entry = reinterpret_cast<const dirent64 *>(buffer + at);
      at += entry->d_reclen;
      const char *name = entry->d_name;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 ||
          (last && std::strcmp(name, last) == 0))
        continue;
      if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        continue;
      int inner =
          openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (inner < 0 && errno == EACCES &&
          fchmodat(folder, name, S_IRWXU, 0) == 0)
        inner = openat(folder, name,
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (inner < 0) {
        isEmpty = false;
        continue;
      }
      emptyFolder(inner);
      close(inner);
      if (unlinkat(folder, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        isEmpty = false;
    }
  }
}

bool removeTree(const char *path) {
  // Some file systems pass over entries while others are removed; and a tool
  // that was killed just now may still have made one.
  for (int attempt = 0; attempt < 5; ++attempt) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
      return errno == ENOENT;
    // Without its lock nobody would know the folder for one of ours.
    if (emptyFolder(folder, lockName))
      unlinkat(folder, lockName, 0);
    close(folder);
    if (rmdir(path) == 0 || errno == ENOENT)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What there is to clean up
//===----------------------------------------------------------------------===//

namespace {
struct FolderSlot {
  std::atomic<bool> isTaken{false};
  /// The path is complete.
  std::atomic<bool> isNamed{false};
  char path[PATH_MAX];
};
} // namespace

static FolderSlot folders[4];
static std::atomic<pid_t> tools[16];
static std::atomic<pid_t> receiver{0};
static std::atomic<int> deferred{0};
static std::atomic<int> waiting{0};

void nameFolder(const std::string &path) {
  if (path.size() >= PATH_MAX)
    return;
  for (FolderSlot &slot : folders)
    if (!slot.isTaken.exchange(true)) {
      std::memcpy(slot.path, path.c_str(), path.size() + 1);
      slot.isNamed = true;
      return;
    }
}

void forgetFolder(const std::string &path) {
  for (FolderSlot &slot : folders)
    if (slot.isNamed && path == slot.path) {
      slot.isNamed = false;
      slot.isTaken = false;
    }
}

void nameTool(pid_t group) {
  for (std::atomic<pid_t> &place : tools) {
    pid_t none = 0;
    if (place.compare_exchange_strong(none, group))
      return;
  }
}

void forgetTool(pid_t group) {
  for (std::atomic<pid_t> &place : tools) {
    pid_t expected = group;
    place.compare_exchange_strong(expected, 0);
  }
}

//===----------------------------------------------------------------------===//
// The signals
//===----------------------------------------------------------------------===//

static void writeText(const char *text) {
  // There is nobody left to tell if this fails.
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, text, std::strlen(text));
}

static constexpr std::pair<int, const char *> signals[] = {
    {SIGINT, "SIGINT"},   {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"},
    {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}};

/// `wasDeferred`: what we were about is done.
[[noreturn]] static void endBy(int number, bool wasDeferred) {
  for (std::atomic<pid_t> &tool : tools)
    if (pid_t group = tool.load())
      kill(-group, SIGKILL);
  bool isClean = true;
  for (FolderSlot &slot : folders)
    if (slot.isNamed)
      isClean &= removeTree(slot.path);
  llvm::sys::RunInterruptHandlers();
  writeText("error: ended by ");
  for (const auto &[known, name] : signals)
    if (known == number)
      writeText(name);
  writeText(!isClean      ? "; the next compilation to the same folder removes "
                            "what is left\n"
            : wasDeferred ? "; the output folder is complete\n"
                          : "; nothing was written\n");
  // So that whoever waits for us sees what it was.
  std::signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  raise(number);
  _exit(1);
}

static void handle(int number, siginfo_t *info, void *) {
  int before = errno;
  if (pid_t process = receiver.load()) {
    // What a terminal sends, the other process has had from it.
    if (info->si_code != SI_KERNEL)
      kill(process, number);
  } else if (deferred.load() > 0) {
    waiting = number;
  } else {
    endBy(number, false);
  }
  errno = before;
}

void handleInterruption() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  // Not on the stack of a matrix product that is measured
  // (runtime/train/Stop.h).
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  for (const auto &[number, name] : signals)
    sigaddset(&action.sa_mask, number);
  for (const auto &[number, name] : signals) {
    struct sigaction present = {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN)
      sigaction(number, &action, nullptr);
  }
}

PassSignalsOn::PassSignalsOn(pid_t process) { receiver = process; }
PassSignalsOn::~PassSignalsOn() { receiver = 0; }

DeferInterruption::DeferInterruption() { ++deferred; }

DeferInterruption::~DeferInterruption() {
  if (--deferred == 0)
    if (int number = waiting.exchange(0))
      endBy(number, true);
}

} // namespace pipewright::codegen
