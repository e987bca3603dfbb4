//===- Patience.h - Waits in a loop ----------------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_PATIENCE_H
#define PIPEWRIGHT_RUNTIME_CUDA_PATIENCE_H

#include <chrono>
#include <thread>

namespace pipewright::runtime {

/// Sleeps in a loop that waits for something that is likely soon.
class Patience {
public:
  explicit Patience(double seconds) : seconds(seconds) {}

  bool isOver() const { return waited() > seconds; }
  void pause() const {
    // A launch takes tens of microseconds; a connection takes milliseconds.
    if (waited() > 1e-3)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();
  }

private:
  double waited() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  const double seconds;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

/// Why another rank has failed is told by the control plane, which may come a
/// little later than the end of its links.
inline constexpr double reasonSeconds = 1;

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_PATIENCE_H
