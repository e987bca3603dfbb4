//===- CpuFeatures.cpp - Whether this CPU can run a program ---------------===//

#include "runtime/cpu/CpuFeatures.h"
#include "runtime/core/Error.h"

#ifdef PIPEWRIGHT_HAS_CPU
#include "runtime/cpu/RequiredFeatures.h"

#include <dnnl.hpp>
#endif

using namespace pipewright::runtime;

/// What the compiler puts beside compiled kernels; absent in programs without.
extern "C" const char pipewright_kernel_features[] __attribute__((weak));

namespace {

/// The builtin takes nothing but literals, and has names of its own.
struct Feature {
  std::string_view name;
  bool (*isThere)();
};

#if defined(__x86_64__)
constexpr Feature features[] = {
    {"sse3", [] { return __builtin_cpu_supports("sse3") != 0; }},
    {"ssse3", [] { return __builtin_cpu_supports("ssse3") != 0; }},
    {"sse4.1", [] { return __builtin_cpu_supports("sse4.1") != 0; }},
    {"sse4.2", [] { return __builtin_cpu_supports("sse4.2") != 0; }},
    {"popcnt", [] { return __builtin_cpu_supports("popcnt") != 0; }},
    {"avx", [] { return __builtin_cpu_supports("avx") != 0; }},
    {"avx2", [] { return __builtin_cpu_supports("avx2") != 0; }},
    {"fma", [] { return __builtin_cpu_supports("fma") != 0; }},
    {"f16c", [] { return __builtin_cpu_supports("f16c") != 0; }},
    {"bmi", [] { return __builtin_cpu_supports("bmi") != 0; }},
    {"bmi2", [] { return __builtin_cpu_supports("bmi2") != 0; }},
    {"lzcnt", [] { return __builtin_cpu_supports("lzcnt") != 0; }},
    {"movbe", [] { return __builtin_cpu_supports("movbe") != 0; }},
    {"gfni", [] { return __builtin_cpu_supports("gfni") != 0; }},
    {"avx512f", [] { return __builtin_cpu_supports("avx512f") != 0; }},
    {"avx512cd", [] { return __builtin_cpu_supports("avx512cd") != 0; }},
    {"avx512vl", [] { return __builtin_cpu_supports("avx512vl") != 0; }},
    {"avx512bw", [] { return __builtin_cpu_supports("avx512bw") != 0; }},
    {"avx512dq", [] { return __builtin_cpu_supports("avx512dq") != 0; }},
    {"avx512ifma", [] { return __builtin_cpu_supports("avx512ifma") != 0; }},
    {"avx512vbmi", [] { return __builtin_cpu_supports("avx512vbmi") != 0; }},
    {"avx512vbmi2", [] { return __builtin_cpu_supports("avx512vbmi2") != 0; }},
    {"avx512vnni", [] { return __builtin_cpu_supports("avx512vnni") != 0; }},
    {"avx512bitalg",
     [] { return __builtin_cpu_supports("avx512bitalg") != 0; }},
    {"avx512vpopcntdq",
     [] { return __builtin_cpu_supports("avx512vpopcntdq") != 0; }},
    {"avx512bf16", [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
};
#else
/// Other CPUs are not told apart.
constexpr Feature features[] = {{"", [] { return true; }}};
#endif

} // namespace

std::optional<bool> pipewright::runtime::hasCpuFeature(std::string_view name) {
  for (const Feature &feature : features)
    if (feature.name == name)
      return feature.isThere();
  return std::nullopt;
}

std::string pipewright::runtime::missingCpuFeatures(std::string_view list) {
  std::string missing;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (name.empty() || hasCpuFeature(name).value_or(false))
      continue;
    missing += missing.empty() ? "" : ", ";
    missing += name;
  }
  return missing;
}

#ifdef PIPEWRIGHT_HAS_CPU
/// The words of ONEDNN_MAX_CPU_ISA.
static std::string isaName(dnnl::cpu_isa isa) {
  switch (isa) {
  case dnnl::cpu_isa::sse41:
    return "SSE41";
  case dnnl::cpu_isa::avx:
    return "AVX";
  case dnnl::cpu_isa::avx2:
    return "AVX2";
  default:
    return "instruction set " + std::to_string(static_cast<int>(isa));
  }
}

/// Whether oneDNN may use all of an instruction set: its numbers are bits.
static bool hasIsa(dnnl::cpu_isa isa) {
  const int bits = static_cast<int>(isa);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

static void checkBFloat16() {
  if (!hasBFloat16Products())
    fail("expected AVX-512, without which oneDNN has no bf16 products on CPUs, "
         "but it has ",
         isaName(dnnl::get_effective_cpu_isa()),
         " here: unset ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA if they are "
         "set, else compile with --precision f32");
}

static bool isInBFloat16(const Program &program) {
  for (const RankProgram &rank : program.ranks)
    for (const TensorInfo &tensor : rank.tensors)
      if (tensor.role == Role::Rounded)
        return true;
  return false;
}
#endif

bool pipewright::runtime::hasBFloat16Products() {
#ifdef PIPEWRIGHT_HAS_CPU
  return hasIsa(dnnl::cpu_isa::avx512_core);
#else
  return false;
#endif
}

void pipewright::runtime::checkKernelFeatures() {
  if (pipewright_kernel_features) {
    const std::string missing = missingCpuFeatures(pipewright_kernel_features);
    if (!missing.empty())
      fail("the program's kernels use instructions that this CPU lacks (",
           missing, "): compile it again on a machine like this one");
  }
}

void pipewright::runtime::checkCpuLibrary(
    [[maybe_unused]] const Program &program) {
#ifdef PIPEWRIGHT_HAS_CPU
  const std::string missing = missingCpuFeatures(runtimeKernelFeatures());
  if (!missing.empty())
    fail(
        "the program's runtime library uses instructions that this CPU lacks (",
        missing,
        "): build it on a machine like this one, or with "
        "-DPIPEWRIGHT_NATIVE=OFF, and compile the program again");
  if (isInBFloat16(program))
    checkBFloat16();
#endif
}

std::string
pipewright::runtime::cpuRemarks([[maybe_unused]] const Program &program) {
#ifdef PIPEWRIGHT_HAS_CPU
  if (isInBFloat16(program) && !hasIsa(dnnl::cpu_isa::avx512_core_bf16))
    return "bf16       slower than f32 on this CPU, which has AVX-512, but "
           "neither AVX-512 BF16 nor AMX\n";
#endif
  return "";
}
