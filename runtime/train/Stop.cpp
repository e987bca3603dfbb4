//===- Stop.cpp - Told to end while training ------------------------------===//

#include "runtime/train/Stop.h"
#include "runtime/core/Error.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
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
static std::atomic<bool> watching{false};
static std::atomic<bool> speaking{false};

/// Launchers send the same signal to a group and to each process in it: what
/// follows so soon is no second wish.
static constexpr std::chrono::milliseconds sameSignal(500);

static const Signal &signalOf(int number) {
  for (const Signal &signal : signals)
    if (signal.number == number)
      return signal;
  return signals[0];
}

const char *pipewright::runtime::signalName(int number) {
  return signalOf(number).name;
}

/// In one call: other threads print meanwhile.
static void say(const std::string &line) {
  if (!speaking)
    return;
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] static void endAtOnce(int number) {
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  raise(number);
  _exit(128 + number);
}

[[noreturn]] static void receive(sigset_t set) {
  using Clock = std::chrono::steady_clock;
  /// When the first came that is no notice.
  std::optional<Clock::time_point> endAskedAt;
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0)
      continue;
    if (!watching)
      endAtOnce(number);
    const bool isNotice = signalOf(number).isNotice;
    const Clock::time_point now = Clock::now();
    if (!isNotice && endAskedAt && now - *endAskedAt > sameSignal) {
      say("ended by a second signal; nothing was saved\n");
      endAtOnce(number);
    }
    if (!isNotice && !endAskedAt)
      endAskedAt = now;
    if (asked)
      continue;
    say(std::string("\n") + signalName(number) +
        ": training stops after this step, and saves" +
        (isNotice ? "\n" : "; a second signal ends it at once\n"));
    // Last: training says that it stops.
    asked = number;
  }
}

void pipewright::runtime::receiveStopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const Signal &signal : signals) {
    struct sigaction present = {};
    sigaction(signal.number, nullptr, &present);
    if (present.sa_handler != SIG_IGN)
      sigaddset(&set, signal.number);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    std::thread(receive, set).detach();
  } catch (const std::system_error &error) {
    fail("cannot start a thread: ", error.code().message(),
         " (ulimit -u, or a container's limit of processes)");
  }
}

void pipewright::runtime::watchForStop(bool speaks) {
  if (speaks)
    speaking = true;
  watching = true;
}

int pipewright::runtime::stopSignal() { return asked; }
