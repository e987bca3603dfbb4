//===- MachineProbe.cpp - A quick look at this machine --------------------===//
//
// Times a matrix product of oneDNN, loaded at run time so that the compiler
// need not link it, and a pass over memory larger than the near caches.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineModel.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <vector>

namespace pipewright {

/// The processor time of this thread: what other processes take meanwhile is
/// not a property of the machine.
static double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// Enough that the least is the same within a few percent.
static constexpr int runs = 10;

/// The least time of a few runs.
template <class Body>
static double bestSeconds(int count, Body body) {
  double best = 1e9;
  for (int run = 0; run < count; ++run) {
    double begin = threadSeconds();
    body();
    best = std::min(best, threadSeconds() - begin);
  }
  return best;
}

/// oneDNN, if it can be found, on one thread.
static void *openLibrary() {
  void *library = nullptr;
  for (const char *name : {"libdnnl.so", "libdnnl.so.3", "libdnnl.so.2"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return nullptr;
  using SetThreads = void (*)(int);
  if (auto setThreads = reinterpret_cast<SetThreads>(
          dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    setThreads(1);
  else if (void *openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL))
    if (auto inOpenmp =
            reinterpret_cast<SetThreads>(dlsym(openmp, "omp_set_num_threads")))
      inOpenmp(1);
  return library;
}

/// Operations per second of one thread; 0 where the library lacks the function
/// of that name, or the CPU what it needs.
template <class Element>
static double matmulRate(void *library, const char *function, Element one) {
  using Gemm =
      int (*)(char, char, int64_t, int64_t, int64_t, float, const Element *,
              int64_t, const Element *, int64_t, float, float *, int64_t);
  auto gemm =
      library ? reinterpret_cast<Gemm>(dlsym(library, function)) : nullptr;
  if (!gemm)
    return 0;
  constexpr int64_t m = 256, n = 512, k = 512;
  std::vector<Element> a(m * k, one), b(k * n, one);
  std::vector<float> c(m * n, 0.0f);
  int status = 0;
  double seconds = bestSeconds(runs, [&] {
    status |= gemm('N', 'N', m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f,
                   c.data(), n);
  });
  return status ? 0 : 2.0 * m * n * k / seconds;
}

/// Lets the compiler believe that somebody looks at the memory.
static void keep(const void *memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

static double memoryRate() {
  std::vector<float> from(1 << 20, 1.0f), to(1 << 20, 0.0f);
  double seconds = bestSeconds(runs, [&] {
    for (size_t i = 0; i < from.size(); ++i)
      to[i] += from[i] * 0.5f;
    keep(to.data());
  });
  return 3.0 * sizeof(float) * from.size() / seconds;
}

/// Between ranks of one machine a message is a copy in memory.
static double copyRate() {
  std::vector<char> from(8 << 20, 1), to(from.size(), 0);
  double seconds = bestSeconds(runs, [&] {
    std::memcpy(to.data(), from.data(), from.size());
    keep(to.data());
  });
  return from.size() / seconds;
}

/// Puts what the library reaches in a precision into a model.
static void measureLibrary(void *library, Precision precision,
                           MachineModel &machine) {
  if (double rate = matmulRate(library, "dnnl_sgemm", 1.0f); rate > 0) {
    // What a program's own kernels reach beside it, as --preflight measures
    // them: products of a model are smaller and less square than the probe's.
    machine.matmulFlops = rate * 0.85;
    machine.convolutionFlops = rate * 0.85;
    machine.attentionFlops = rate * 0.38;
  }
  // The bits of 1 in bf16. Programs use another function, a little faster.
  double rate =
      precision == Precision::BF16
          ? matmulRate<uint16_t>(library, "dnnl_gemm_bf16bf16f32", 0x3F80)
          : 0;
  if (rate > 0) {
    machine.matmulFlops = rate;
    machine.convolutionFlops = rate * 0.6;
    machine.attentionFlops = rate * 0.3;
  }
}

MachineModels measureCore(llvm::ArrayRef<Precision> precisions) {
  MachineModel machine;
  machine.bandwidth = memoryRate();
  machine.linkBandwidth = copyRate();
  void *library = openLibrary();
  MachineModels models;
  for (Precision precision : precisions) {
    models[precision] = machine;
    measureLibrary(library, precision, models[precision]);
  }
  return models;
}

} // namespace pipewright
