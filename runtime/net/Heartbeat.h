//===- Heartbeat.h - A thread that acts now and then ------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_NET_HEARTBEAT_H
#define PIPEWRIGHT_RUNTIME_NET_HEARTBEAT_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace pipewright::runtime {

/// How often a rank tells that it lives, so that several beats may be late
/// before it counts as lost.
double beatSeconds(double silenceSeconds);

/// Calls a function at once and again after each interval, on a thread of its
/// own, until it is stopped.
class Heartbeat {
public:
  Heartbeat() = default;
  ~Heartbeat() { stop(); }

  void start(std::function<void()> beat, std::function<double()> interval);
  /// Returns when no beat runs any more. May be called twice.
  void stop();

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::thread thread;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_HEARTBEAT_H
