//===- StepTimes.h - What steps took lately ---------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_STEPTIMES_H
#define PIPEWRIGHT_RUNTIME_TRAIN_STEPTIMES_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pipewright::runtime {

/// Seconds of the last steps: a run of any length takes the same memory. The
/// first step, which also warms caches up, counts where there is no other.
class StepTimes {
public:
  static constexpr size_t capacity = 4096;

  void add(double seconds) {
    if (count++ == 1)
      window.clear();
    if (window.size() < capacity)
      window.push_back(seconds);
    else
      window[count % capacity] = seconds;
  }

  bool isEmpty() const { return window.empty(); }
  /// Of at least one step.
  double median() const {
    std::vector<double> sorted = window;
    const auto middle = sorted.begin() + sorted.size() / 2;
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

private:
  std::vector<double> window;
  size_t count = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_STEPTIMES_H
