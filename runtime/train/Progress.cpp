//===- Progress.cpp - What a person sees while training -------------------===//

#include "runtime/train/Progress.h"
#include "runtime/core/Text.h"
#include "runtime/net/MpiTransport.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>
#include <utility>

using namespace pipewright::runtime;

Progress::Progress(int64_t steps, int64_t samples, int64_t tokens,
                   double lineSeconds)
    : steps(steps), samples(samples), tokens(tokens), lineSeconds(lineSeconds),
      // mpirun gives its processes a terminal of its own, whatever it writes
      // to itself.
      terminal(isatty(STDOUT_FILENO) != 0 && !startedByMpi()) {}

void Progress::clear() {
  if (open)
    std::fputs("\r\033[K", stdout);
  open = false;
}

void Progress::step(int64_t number, double loss, double seconds) {
  // The first step warms up caches and says little about the others.
  smoothSeconds = number <= 2 ? seconds : 0.9 * smoothSeconds + 0.1 * seconds;
  const auto now = std::chrono::steady_clock::now();
  // Every twentieth of the steps leaves a line.
  const int64_t interval = std::max<int64_t>(1, steps / 20);
  const int64_t before = std::exchange(seen, number);
  const bool isKept =
      number == steps || before == 0 || number / interval != before / interval;
  const double passed = std::chrono::duration<double>(now - shown).count();
  if (!isKept && passed < (terminal ? 0.1 : lineSeconds))
    return;
  shown = now;
  const int width = static_cast<int>(std::to_string(steps).size());
  const double perSecond =
      samples * std::max<int64_t>(tokens, 1) / smoothSeconds;
  clear();
  std::printf("step %*lld/%lld   loss %.4f   %s %s/s   %s left", width,
              (long long)number, (long long)steps, loss,
              perSecond < 10 ? std::to_string(perSecond).substr(0, 4).c_str()
                             : groupedText(std::llround(perSecond)).c_str(),
              tokens ? "tokens" : "samples",
              durationText((steps - number) * smoothSeconds).c_str());
  open = terminal && !isKept;
  if (!open)
    std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Progress::evaluation(int64_t number, const std::string &result) {
  char text[96] = "";
  const int width = static_cast<int>(std::to_string(steps).size());
  if (steps > 0)
    std::snprintf(text, sizeof text, "step %*lld/%lld   ", width,
                  (long long)number, (long long)steps);
  line(text + ("held-out " + result));
}

void Progress::line(const std::string &text) {
  clear();
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}
