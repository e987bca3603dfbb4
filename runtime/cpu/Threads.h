//===- Threads.h - Which cores a rank computes on --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_THREADS_H
#define PIPEWRIGHT_RUNTIME_CPU_THREADS_H

#include <cstdint>
#include <vector>

namespace pipewright::runtime {

/// The ranks of this host and the cores that they share out.
struct Placement {
  int64_t ranksOnHost = 1;
  int64_t threadsPerRank = 1;
  std::vector<int> cores;

  /// `threads` 0: the cores shared out evenly. Under a launcher each process
  /// was bound already, by a rule that knows nothing of our threads: then all
  /// cores of the machine count, else only those that we may use (taskset).
  Placement(int64_t ranksOnHost, int64_t threads, bool launched);

  bool pinned() const {
    return ranksOnHost * threadsPerRank <= static_cast<int64_t>(cores.size());
  }
  /// Gives the calling thread, and the compute threads that it will start,
  /// cores of their own when there are enough for all; else they float.
  void apply(int64_t indexOnHost) const;
  /// The same when the compute threads run already.
  void move(int64_t indexOnHost) const;
  /// Gives the calling thread the cores of all ranks.
  void leave() const { use(0, static_cast<int64_t>(cores.size())); }

private:
  void use(int64_t first, int64_t count) const;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_THREADS_H
