//===- Watchdog.cpp - Ends a host that the driver holds up ----------------===//

#include "runtime/cuda/Watchdog.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <sstream>

using namespace pipewright::runtime;

Watchdog::Watchdog(double seconds, int64_t number,
                   std::function<std::string()> explain,
                   std::function<void()> release)
    : seconds(seconds), number(number), explain(std::move(explain)),
      release(std::move(release)) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    closing = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Watchdog::begin() {
  touch();
  watching = true;
  if (!thread.joinable())
    thread = std::thread([this] { watch(); });
}

static std::string lateText(double seconds, const std::string &position) {
  std::ostringstream text;
  text << "the CUDA driver has held up the host for " << seconds
       << " s, because its queues are full or until the GPU is idle, but the "
          "GPU comes no further"
       << (position.empty() ? "" : "; ") << position
       << " (--timeout changes it)";
  return text.str();
}

void Watchdog::watch() {
  const std::chrono::duration<double> interval(
      std::clamp(seconds / 20, 0.01, 0.5));
  uint64_t seen = signs;
  Clock::time_point since = Clock::now();
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, interval, [&] { return closing; })) {
    const uint64_t now = signs;
    if (!watching || now != seen) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since >
               std::chrono::duration<double>(seconds * patience)) {
      lock.unlock();
      return bark();
    }
  }
}

/// Calls it on a thread of its own, and waits no longer than this for what it
/// says.
static std::string callFor(double seconds,
                           const std::function<std::string()> &body) {
  const auto said = std::make_shared<std::promise<std::string>>();
  std::future<std::string> text = said->get_future();
  std::thread([body, said] {
    try {
      said->set_value(body());
    } catch (const std::exception &) {
      said->set_value("");
    }
  }).detach();
  const auto state = text.wait_for(std::chrono::duration<double>(seconds));
  return state == std::future_status::ready ? text.get() : "";
}

void Watchdog::bark() {
  const uint64_t seen = signs;
  message = lateText(seconds * patience, callFor(1, explain));
  // Too late: it has come on in the very last moment.
  if (!watching || signs != seen)
    return;
  barked.store(true, std::memory_order_release);
  callFor(std::clamp(seconds, 0.5, 10.0), [this] {
    release();
    return std::string();
  });
  const auto until = Clock::now() + std::chrono::duration<double>(
                                        std::clamp(seconds, 0.5, 5.0));
  while (Clock::now() < until) {
    // From here on the thread itself tells what is wrong.
    if (!watching || signs != seen)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // Ranks of one process may all hang; one message is enough.
  static std::mutex speaking;
  speaking.lock();
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", processName(number).c_str(),
               printable(message).c_str());
  std::fflush(stderr);
  // The driver's and NCCL's own ends would wait for the GPU.
  std::_Exit(1);
}

void Watchdog::failLate() const { fail(message); }
