//===- KeptValues.h - What a backward keeps of its forward ------*- C++ -*-===//
//
// Chooses, within a number of bytes, which values of a forward are kept for the
// backward so that computing the others again takes the least time, as pure
// code over plain data. Each op is computed again once at most.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_KEPTVALUES_H
#define PIPEWRIGHT_PASSES_PLANNING_KEPTVALUES_H

#include <cstdint>
#include <vector>

namespace pipewright {

/// A forward: what its ops read and make.
struct ForwardGraph {
  struct Value {
    int64_t bytes = 0;
    /// Whether the backward reads it.
    bool isNeeded = false;
  };
  struct Op {
    double seconds = 0;
    /// Of `values`.
    std::vector<int32_t> operands, results;
  };
  /// A value that no op makes is given, and cannot be computed again.
  std::vector<Value> values;
  /// Each behind those that make its operands.
  std::vector<Op> ops;
};

struct KeptValues {
  /// Ascending; given ones that are read are among them.
  std::vector<int32_t> values;
  int64_t bytes = 0;
  /// Of what is computed again.
  double seconds = 0;
};

/// What to keep within `limit` bytes for the least time; the fewest bytes where
/// no choice is within the limit. A dynamic program over the ops: its states
/// are which of the values that later ops read are there in the backward, each
/// with the choices of bytes and time that no other one beats. Exact while at
/// most 12 such values are open at a time (of others, only those that are
/// needed are kept) and while at most 20,000 choices are worth following (then
/// each is at most a small share of the limit behind one that was dropped).
KeptValues chooseKept(const ForwardGraph &graph, int64_t limit);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_KEPTVALUES_H
