//===- PtxTesting.h - Runs snippets of PTX ---------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_UNIT_DOUBLES_PTXTESTING_H
#define PIPEWRIGHT_TEST_UNIT_DOUBLES_PTXTESTING_H

#include "test/doubles/ptx/Ptx.h"

#include <bit>
#include <gtest/gtest.h>

namespace pipewright::ptx {

/// A module with one kernel, `k`, of one parameter: the address of memory that
/// %rd0 gets. Registers: %p0..9, %h0..29, %r0..29, %rd0..29; %r0 is %tid.x.
inline std::string moduleOf(const std::string &body,
                            const std::string &variables = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + variables +
         "\n.visible .entry k(.param .u64 k_param_0) {\n"
         ".reg .pred %p<10>;\n.reg .b16 %h<30>;\n.reg .b32 %r<30>;\n"
         ".reg .b64 %rd<30>;\n" +
         "ld.param.u64 %rd0, [k_param_0];\nmov.u32 %r0, %tid.x;\n" + body +
         "\nret;\n}\n";
}

/// Runs the body in one warp, or in more.
template <class T>
void runBody(const std::string &body, std::vector<T> &memory,
             LaunchShape shape = {{1}, {32}, 0},
             const std::string &variables = "") {
  RangeMemory ranges;
  ranges.add(memory.data(), memory.size() * sizeof(T));
  Arguments arguments;
  arguments.add(memory.data());
  Module::parse(moduleOf(body, variables))
      .launch("k", shape, arguments.bytes(), ranges);
}

/// Evaluates instructions for one set of operands: a, b, c are in %rd10..12,
/// their low halves in %r10..12 and %h10..12; the result is %rd20, %r20 or
/// %h20, by its width; the lanes get different operands before.
uint64_t evaluate(const std::string &body, int resultBits, uint64_t a,
                  uint64_t b = 0, uint64_t c = 0);

inline uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }
inline uint64_t bits(int32_t value) { return static_cast<uint32_t>(value); }
inline uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

/// The message of the error that `work` throws; empty if it throws none.
template <class Error, class Work>
std::string messageOf(Work work) {
  try {
    work();
  } catch (const Error &error) {
    return error.what();
  }
  return {};
}

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_UNIT_DOUBLES_PTXTESTING_H
