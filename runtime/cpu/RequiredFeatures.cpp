//===- RequiredFeatures.cpp - What the runtime's kernels need -------------===//
//
// Compiled with the options of all kernels, whose macros it reads.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/RequiredFeatures.h"

const char *pipewright::runtime::runtimeKernelFeatures() {
  return ""
#ifdef __POPCNT__
         "popcnt,"
#endif
#ifdef __AVX__
         "avx,"
#endif
#ifdef __AVX2__
         "avx2,"
#endif
#ifdef __FMA__
         "fma,"
#endif
#ifdef __F16C__
         "f16c,"
#endif
#ifdef __BMI__
         "bmi,"
#endif
#ifdef __BMI2__
         "bmi2,"
#endif
#ifdef __LZCNT__
         "lzcnt,"
#endif
#ifdef __MOVBE__
         "movbe,"
#endif
#ifdef __GFNI__
         "gfni,"
#endif
#ifdef __AVX512F__
         "avx512f,"
#endif
#ifdef __AVX512CD__
         "avx512cd,"
#endif
#ifdef __AVX512VL__
         "avx512vl,"
#endif
#ifdef __AVX512BW__
         "avx512bw,"
#endif
#ifdef __AVX512DQ__
         "avx512dq,"
#endif
#ifdef __AVX512IFMA__
         "avx512ifma,"
#endif
#ifdef __AVX512VBMI__
         "avx512vbmi,"
#endif
#ifdef __AVX512VBMI2__
         "avx512vbmi2,"
#endif
#ifdef __AVX512VNNI__
         "avx512vnni,"
#endif
#ifdef __AVX512BITALG__
         "avx512bitalg,"
#endif
#ifdef __AVX512VPOPCNTDQ__
         "avx512vpopcntdq,"
#endif
#ifdef __AVX512BF16__
         "avx512bf16,"
#endif
      ;
}
