//===- Limits.h - How long conformance tests wait --------------*- C++ -*-===//
//
// Most of them take milliseconds. On a machine that is busy, or whose processes
// stand still for some seconds, they take longer; only what is far above that
// is a mistake.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_LIMITS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_LIMITS_H

#include <chrono>

namespace pipewright::runtime {

/// The deadline, in seconds, of waits that are expected to end well.
inline constexpr double hangSeconds = 120;

/// What nobody waits for until its deadline ends within this time.
inline constexpr std::chrono::seconds soon{60};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_LIMITS_H
