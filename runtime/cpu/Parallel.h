//===- Parallel.h - Loops over the rank's own threads ----------*- C++ -*-===//
//
// oneDNN brings GNU's OpenMP runtime; a second one (clang's) in the same
// process would fight with it for the cores. So loops use that runtime's own
// entry points, which works with any compiler.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_PARALLEL_H
#define PIPEWRIGHT_RUNTIME_CPU_PARALLEL_H

#include <algorithm>
#include <cstdint>

extern "C" {
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace pipewright::runtime {

/// Calls body(begin, end, thread) on parts of [0, count). Which part a thread
/// gets must not matter for the result.
template <class Body>
void parallelFor(int64_t threads, int64_t count, const Body &body) {
  threads = std::min(threads, count);
  if (threads <= 1) {
    if (count > 0)
      body(int64_t{0}, count, int64_t{0});
    return;
  }
  struct Task {
    const Body &body;
    int64_t count;
  } task = {body, count};
  GOMP_parallel(
      [](void *data) {
        const Task &task = *static_cast<Task *>(data);
        const int64_t thread = omp_get_thread_num();
        const int64_t team = omp_get_num_threads();
        const int64_t begin = task.count * thread / team;
        const int64_t end = task.count * (thread + 1) / team;
        if (begin < end)
          task.body(begin, end, thread);
      },
      &task, static_cast<unsigned>(threads), 0);
}

/// Threads worth waking for an elementwise loop over this many elements.
inline int64_t threadsFor(int64_t threads, int64_t elements) {
  return std::clamp<int64_t>(elements / 32768, 1, threads);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_PARALLEL_H
