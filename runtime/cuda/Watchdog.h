//===- Watchdog.h - Ends a host that the driver holds up -------*- C++ -*-===//
//
// The driver takes only so much work for a stream; then a call waits until the
// GPU has done some of it. If that waits for a rank which has died, the call
// never returns, and no deadline of the calling thread is ever looked at. So a
// second thread looks whether the first one comes on.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_WATCHDOG_H
#define PIPEWRIGHT_RUNTIME_CUDA_WATCHDOG_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace pipewright::runtime {

class Watchdog {
public:
  /// After `seconds` without a sign of life `explain` says where things stand,
  /// and `release` frees what the thread may hang on; both may hang themselves.
  /// If the thread comes on then, `touch` throws. Else the process ends with
  /// the message of rank `number`.
  Watchdog(double seconds, int64_t number, std::function<std::string()> explain,
           std::function<void()> release);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  /// The thread is watched from here on, until end.
  void begin();
  /// What has a deadline of its own may take `times` as long.
  void allow(double times) {
    patience = times;
    touch();
  }
  void end() { watching = false; }
  /// The same around what is slow for other reasons; whether it was watched.
  bool pause() { return watching.exchange(false); }
  void resume() {
    signs.fetch_add(1, std::memory_order_relaxed);
    watching = true;
  }
  /// A sign of life. Throws an Error if it comes too late.
  void touch() {
    signs.fetch_add(1, std::memory_order_relaxed);
    if (barked.load(std::memory_order_acquire))
      failLate();
  }

private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void bark();
  [[noreturn]] void failLate() const;

  const double seconds;
  const int64_t number;
  const std::function<std::string()> explain;
  const std::function<void()> release;

  std::atomic<bool> watching{false}, barked{false};
  std::atomic<double> patience{1};
  std::atomic<uint64_t> signs{0};
  /// Written before `barked`.
  std::string message;

  std::mutex mutex;
  std::condition_variable changed;
  bool closing = false;
  std::thread thread;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_WATCHDOG_H
