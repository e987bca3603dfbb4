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
#include <memory>
#include <vector>

namespace pipewright {

/// A forward: what its ops read and make.
struct ForwardGraph {
  struct Value {
    int64_t bytes = 0;
    /// Whether the backward reads it.
    bool isNeeded = false;

    bool operator==(const Value &other) const = default;
  };
  struct Op {
    double seconds = 0;
    /// Of `values`.
    std::vector<int32_t> operands, results;
    /// Ops of one run, such as a layer, are computed again at about the same
    /// time; what a run makes and another one reads is always kept.
    int32_t run = 0;

    bool operator==(const Op &other) const = default;
  };
  /// A value that no op makes is given, and cannot be computed again.
  std::vector<Value> values;
  /// Each behind those that make its operands.
  std::vector<Op> ops;

  bool operator==(const ForwardGraph &other) const = default;
};

struct KeptValues {
  /// Ascending; given ones that are needed, or that one run alone reads, are
  /// among them.
  std::vector<int32_t> values;
  /// Of these.
  int64_t bytes = 0;
  /// Of the values that are computed again and that the backward reads, the
  /// most bytes in one run. What only leads to them is there for a short time.
  int64_t again = 0;
  /// Of what is computed again.
  double seconds = 0;

  /// What is taken by so many forwards whose backward is to come, one of which
  /// computes again.
  int64_t bytesOf(int64_t forwards) const { return forwards * bytes + again; }
  /// Whether to take it rather than another choice within a limit.
  bool isBetter(const KeptValues &other, int64_t forwards, int64_t limit) const;
};

/// What to keep of each of some `forwards` for the least time, within `limit`
/// bytes for all of them and for what one computes again; the fewest bytes
/// where no choice is within the limit.
///
/// A dynamic program over the ops of each run finds the choices that no other
/// one beats in bytes kept, bytes made again and time; its states are which of
/// the values that later ops read are there. Another one over the runs puts
/// them together, for each number of bytes that a run may make again. Exact
/// while at most 12 values of a run are open at a time (of others, only those
/// that are needed are kept), while there are at most 4,000 choices to follow
/// (beyond, each lies within a small share of the limit of one that was
/// dropped), and at most 32 such numbers.
///
/// Of several graphs some may be equal, as stages of a model are. What does not
/// depend on forwards and limits is found once for these.
class KeptChooser {
public:
  KeptChooser();
  ~KeptChooser();

  KeptValues choose(const ForwardGraph &graph, int64_t forwards, int64_t limit);

private:
  struct Known;
  std::vector<std::unique_ptr<Known>> known;
};

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_KEPTVALUES_H
