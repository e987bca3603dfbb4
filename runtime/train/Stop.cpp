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

static std::atomic<int> asked{0};
static std::atomic<int64_t> askedAt{0};
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

const char *pipewright::runtime::signalName(int number) {
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

/// Calls nothing that a signal handler may not.
static void handle(int number) {
  const int before = errno;
  const int64_t now = milliseconds();
  int none = 0;
  if (asked.compare_exchange_strong(none, number)) {
    askedAt = now;
    if (speaking) {
      writeText("\n");
      writeText(signalName(number));
      writeText(": training stops after this step, and saves; a second signal "
                "ends it at once\n");
    }
  } else if (now - askedAt > sameMilliseconds) {
    if (speaking)
      writeText("ended by a second signal; nothing was saved\n");
    std::signal(number, SIG_DFL);
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    raise(number);
  }
  errno = before;
}

void pipewright::runtime::watchForStop(bool speaks) {
  if (speaks)
    speaking = true;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present = {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN)
      sigaction(number, &action, nullptr);
  }
}

int pipewright::runtime::stopSignal() { return asked; }
