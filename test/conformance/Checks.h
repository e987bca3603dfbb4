//===- Checks.h - What scenarios are written with --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_CHECKS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_CHECKS_H

#include "runtime/core/Error.h"

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright::runtime {

/// Throws std::logic_error unless it holds.
inline void check(bool holds, const std::string &what) {
  if (!holds)
    throw std::logic_error("does not hold: " + what);
}

/// The message of the Error that the body throws; "no error".
template <class Body>
std::string errorOf(const Body &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

inline std::vector<int64_t> pattern(int64_t count, int64_t first) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// The name of a test of (ranks, scenario): "ring4".
inline constexpr auto scenarioName = [](const auto &info) {
  const auto &[ranks, scenario] = info.param;
  return std::string(scenario.name) + std::to_string(ranks);
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_CHECKS_H
