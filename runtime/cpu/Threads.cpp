//===- Threads.cpp - Which cores a rank computes on -----------------------===//

#include "runtime/cpu/Threads.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <sched.h>
#include <unistd.h>

using namespace pipewright::runtime;

Placement::Placement(int64_t ranksOnHost, int64_t threads, bool launched)
    : ranksOnHost(ranksOnHost) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known =
      !launched && sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int64_t online =
      std::clamp<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1, CPU_SETSIZE);
  for (int core = 0; core < (known ? CPU_SETSIZE : online); ++core)
    if (!known || CPU_ISSET(core, &allowed))
      cores.push_back(core);
  threadsPerRank =
      threads ? threads
              : std::max<int64_t>(1, static_cast<int64_t>(cores.size()) /
                                         ranksOnHost);
}

void Placement::apply(int64_t indexOnHost) const {
#ifdef PIPEWRIGHT_HAS_CPU
  // Per thread: oneDNN asks the calling thread's setting.
  omp_set_num_threads(static_cast<int>(threadsPerRank));
#endif
  if (pinned())
    use(indexOnHost * threadsPerRank, threadsPerRank);
  else
    leave();
}

void Placement::use(int64_t first, int64_t count) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int64_t i = first; i < first + count; ++i)
    CPU_SET(cores[i], &set);
  // Where this is not allowed, programs are slower, but right.
  sched_setaffinity(0, sizeof set, &set);
}

void Placement::move(int64_t indexOnHost) const {
  if (!pinned())
    return;
  apply(indexOnHost);
#ifdef PIPEWRIGHT_HAS_CPU
  parallelFor(threadsPerRank, threadsPerRank,
              [&](int64_t, int64_t, int64_t) { apply(indexOnHost); });
#endif
}
