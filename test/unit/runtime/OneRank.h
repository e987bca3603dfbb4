//===- OneRank.h - A rank for tests of kernels -----------------*- C++ -*-===//
//
// A rank of its own world with an arena that tests carve buffers from, and
// the comparison that all kernel tests use.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_RUNTIME_ONERANK_H
#define PIPEWRIGHT_TEST_UNIT_RUNTIME_ONERANK_H

#include "runtime/Runtime.h"
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/net/ThreadTransport.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// Tests that need them.
class BFloat16Products : public ::testing::Test {
protected:
  void SetUp() override {
    if (!hasBFloat16Products())
      GTEST_SKIP() << "this CPU has none for oneDNN";
  }
};

class OneRank {
public:
  explicit OneRank(int64_t bytes = 64 << 20)
      : program(makeProgram(bytes)), world(1), transport(world, 0),
        rank(program, transport) {
    rank.beginStep(3, 0.1f);
    rank.setSeed(42);
  }

  /// An uninitialised buffer of `count` floats.
  Buffer floats(int64_t count) { return bytes(count * 4); }
  Buffer bytes(int64_t size) {
    const Buffer buffer = {next, size};
    next += (size + 63) / 64 * 64;
    return buffer;
  }
  /// Random numbers in [-1, 1).
  Buffer randomFloats(int64_t count) {
    const Buffer buffer = floats(count);
    float *data = rank.data<float>(buffer);
    for (int64_t i = 0; i < count; ++i)
      data[i] = static_cast<int32_t>(philox(++key, i, 0, 0, 0)[0]) * 0x1p-31f;
    return buffer;
  }
  std::vector<float> read(Buffer buffer) {
    const float *data = rank.data<float>(buffer);
    return std::vector<float>(data, data + buffer.bytes / 4);
  }
  float *at(Buffer buffer) { return rank.data<float>(buffer); }

private:
  static Program makeProgram(int64_t bytes) {
    Program program;
    program.ranks.push_back({});
    program.ranks[0].arenaBytes = bytes;
    return program;
  }

  const Program program;
  ThreadWorld world;
  ThreadTransport transport;
  int64_t next = 0;
  uint64_t key = 0;

public:
  Rank rank;
};

/// Whether two results agree: the largest difference, relative to the largest
/// number, is at most `tolerance`. Tells where it is worst.
inline ::testing::AssertionResult agree(const std::vector<float> &got,
                                        const std::vector<float> &expected,
                                        double tolerance) {
  if (got.size() != expected.size())
    return ::testing::AssertionFailure()
           << got.size() << " values, expected " << expected.size();
  double largest = 1e-6, worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(expected[i]));
    const double difference = std::fabs(got[i] - expected[i]);
    // A NaN stays the worst.
    if (!(difference <= worst) && !std::isnan(worst)) {
      worst = difference;
      where = i;
    }
  }
  if (worst <= tolerance * largest)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "element " << where << ": got " << got[where] << ", expected "
         << expected[where] << " (difference " << worst / largest
         << " of the largest, tolerance " << tolerance << ")";
}

/// The message of the Error that `body` throws; "" when it throws none.
template <class Body>
std::string errorOf(const Body &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_UNIT_RUNTIME_ONERANK_H
