//===- Progress.h - What a person sees while training ----------*- C++ -*-===//
//
// On a terminal one line that rewrites itself; elsewhere about twenty lines
// over the whole run, and one a minute at least.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_PROGRESS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace pipewright::runtime {

class Progress {
public:
  /// A step is `samples` samples of `tokens` tokens each (0: not a text).
  /// Where there is no terminal `lineSeconds` is the longest time without a
  /// line.
  Progress(int64_t steps, int64_t samples, int64_t tokens,
           double lineSeconds = 60);

  void step(int64_t number, double loss, double seconds);
  /// `result`: "loss 1.2345", with metrics.
  void evaluation(int64_t number, const std::string &result);
  /// A line of its own, below whatever stands there.
  void line(const std::string &text);

private:
  void clear();

  const int64_t steps, samples, tokens;
  const double lineSeconds;
  const bool terminal;
  bool open = false;
  /// The step before; they may come several at a time.
  int64_t seen = 0;
  double smoothSeconds = 0;
  std::chrono::steady_clock::time_point shown;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_PROGRESS_H
