//===- ThreadLimit.cpp - Whether a process may have more threads ----------===//

#include "runtime/core/ThreadLimit.h"
#include "runtime/core/Error.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

using namespace pipewright::runtime;

std::string pipewright::runtime::threadTrouble(int64_t threads,
                                               const std::error_code &reason) {
  return "cannot start " + std::to_string(threads) +
         " threads: " + reason.message() +
         " (ulimit -u, or a container's limit of processes; fewer ranks or "
         "--threads-per-rank need fewer)";
}

void pipewright::runtime::checkThreads(int64_t count) {
  std::mutex mutex;
  std::condition_variable changed;
  bool mayEnd = false;
  std::vector<std::thread> threads;
  std::error_code reason;
  // All at once, as they will be.
  try {
    for (int64_t i = 0; i < count; ++i)
      threads.emplace_back([&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return mayEnd; });
      });
  } catch (const std::system_error &error) {
    reason = error.code();
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    mayEnd = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  if (reason)
    fail(threadTrouble(count, reason));
}
