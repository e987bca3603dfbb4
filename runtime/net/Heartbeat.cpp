//===- Heartbeat.cpp - A thread that acts now and then --------------------===//

#include "runtime/net/Heartbeat.h"

#include <algorithm>
#include <chrono>
#include <utility>

using namespace pipewright::runtime;

double pipewright::runtime::beatSeconds(double silenceSeconds) {
  return std::clamp(silenceSeconds / 8, 0.01, 1.0);
}

void Heartbeat::start(std::function<void()> beat,
                      std::function<double()> interval) {
  thread = std::thread([this, beat = std::move(beat),
                        interval = std::move(interval)] {
    std::unique_lock<std::mutex> lock(mutex);
    while (!stopping) {
      lock.unlock();
      beat();
      lock.lock();
      // Looked at often enough that a shorter interval soon holds.
      using Clock = std::chrono::steady_clock;
      const auto since = Clock::now();
      auto due = [&] {
        return std::chrono::duration<double>(Clock::now() - since).count() >=
               interval();
      };
      while (!stopping && !due())
        changed.wait_for(
            lock, std::chrono::duration<double>(std::min(0.05, interval())));
    }
  });
}

void Heartbeat::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}
