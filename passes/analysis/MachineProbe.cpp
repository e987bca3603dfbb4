//===- MachineProbe.cpp - A quick look at this machine --------------------===//
//
// Times a matrix product of oneDNN, loaded at run time so that the compiler
// need not link it, and a pass over memory larger than the near caches.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/CostModel.h"

#include <chrono>
#include <dlfcn.h>
#include <thread>
#include <vector>

namespace pipewright {

/// The least time of a few runs.
template <class Body>
static double bestSeconds(int runs, Body body) {
  double best = 1e9;
  for (int run = 0; run < runs; ++run) {
    auto begin = std::chrono::steady_clock::now();
    body();
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

/// Operations per second of one thread, 0 where the library is not found.
static double matmulRate() {
  using Sgemm =
      int (*)(char, char, int64_t, int64_t, int64_t, float, const float *,
              int64_t, const float *, int64_t, float, float *, int64_t);
  using SetThreads = void (*)(int);
  void *library = nullptr;
  for (const char *name : {"libdnnl.so", "libdnnl.so.3", "libdnnl.so.2"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return 0;
  auto sgemm = reinterpret_cast<Sgemm>(dlsym(library, "dnnl_sgemm"));
  if (!sgemm)
    return 0;
  if (auto setThreads = reinterpret_cast<SetThreads>(
          dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    setThreads(1);
  else if (void *openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL))
    if (auto inOpenmp =
            reinterpret_cast<SetThreads>(dlsym(openmp, "omp_set_num_threads")))
      inOpenmp(1);
  constexpr int64_t m = 256, n = 512, k = 512;
  std::vector<float> a(m * k, 1.0f), b(k * n, 0.5f), c(m * n, 0.0f);
  double seconds = bestSeconds(5, [&] {
    sgemm('N', 'N', m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f, c.data(), n);
  });
  return 2.0 * m * n * k / seconds;
}

static double memoryRate() {
  std::vector<float> from(1 << 20, 1.0f), to(1 << 20, 0.0f);
  double seconds = bestSeconds(5, [&] {
    for (size_t i = 0; i < from.size(); ++i)
      to[i] += from[i] * 0.5f;
  });
  return 3.0 * sizeof(float) * from.size() / seconds;
}

MachineModel MachineModel::measure() {
  MachineModel machine;
  machine.cores = std::max(1u, std::thread::hardware_concurrency());
  if (double rate = matmulRate(); rate > 0) {
    // Products of a model are smaller and less square than the probe's.
    machine.matmulFlops = rate * 0.85;
    machine.convolutionFlops = rate * 0.8;
    machine.attentionFlops = rate * 0.25;
  }
  machine.bandwidth = memoryRate();
  machine.linkBandwidth = machine.bandwidth / 3;
  return machine;
}

} // namespace pipewright
