//===- Stop.cpp - Told to end while training ------------------------------===//

#include "runtime/train/Stop.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

using namespace pipewright::runtime;

/// A signal that asks for an end.
namespace {
struct Signal {
  int number;
  const char *name;
  /// Whether it never ends at once.
  bool isNotice;
};
} // namespace

static constexpr Signal signals[] = {
    {SIGINT, "SIGINT", false},  {SIGTERM, "SIGTERM", false},
    {SIGHUP, "SIGHUP", false},  {SIGUSR1, "SIGUSR1", true},
    {SIGUSR2, "SIGUSR2", true}, {SIGXCPU, "SIGXCPU", true}};

static std::atomic<int> asked{0};
/// When the first came that is no notice; 0: none has.
static std::atomic<int64_t> endAskedAt{0};
static std::atomic<bool> speaking{false};

/// Launchers send the same signal to a group and to each process in it: what
/// follows so soon is no second wish.
static constexpr int64_t sameMilliseconds = 500;

static int64_t milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

static void writeText(const char *text) {
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text, std::strlen(text));
}

static const Signal &signalOf(int number) {
  for (const Signal &signal : signals)
    if (signal.number == number)
      return signal;
  return signals[0];
}

const char *pipewright::runtime::signalName(int number) {
  return signalOf(number).name;
}

[[noreturn]] static void endAtOnce(int number) {
  if (speaking)
    writeText("ended by a second signal; nothing was saved\n");
  std::signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  raise(number);
  _exit(128 + number);
}

/// Calls nothing that a signal handler may not.
static void handle(int number) {
  const int before = errno;
  const int64_t now = milliseconds();
  const bool isNotice = signalOf(number).isNotice;
  int none = 0;
  if (asked.compare_exchange_strong(none, number) && speaking) {
    writeText("\n");
    writeText(signalName(number));
    writeText(": training stops after this step, and saves");
    writeText(isNotice ? "\n" : "; a second signal ends it at once\n");
  }
  int64_t never = 0;
  if (!isNotice && !endAskedAt.compare_exchange_strong(never, now) &&
      now - endAskedAt > sameMilliseconds)
    endAtOnce(number);
  errno = before;
}

void pipewright::runtime::watchForStop(bool speaks) {
  if (speaks)
    speaking = true;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (const Signal &signal : signals) {
    struct sigaction present = {};
    sigaction(signal.number, nullptr, &present);
    if (present.sa_handler != SIG_IGN)
      sigaction(signal.number, &action, nullptr);
  }
}

int pipewright::runtime::stopSignal() { return asked; }
