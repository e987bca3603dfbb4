//===- StepDigest.h - What a rank computed in a step, as hashes -*- C++ -*-===//
//
// A hash of all that a rank took and gave in a step, in the order of its tasks:
// inputs, messages, losses, gradients, weights after the update. Of two runs of
// the same step the first entries that differ, of all ranks, say where the
// difference began: on the rank that got nothing else and gave something else.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_STEPDIGEST_H
#define PIPEWRIGHT_RUNTIME_RANK_STEPDIGEST_H

#include "runtime/core/Arena.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class StepDigest {
public:
  enum class Kind {
    Input,
    Send,
    Receive,
    /// What a rank gives to a sum of several, and what it gets.
    Addend,
    Sum,
    Loss,
    Gradient,
    /// A weight or a state after the update.
    Tensor,
    /// Of all gradients, before they were clipped.
    Norm
  };

  struct Entry {
    Kind kind;
    /// The input, the peer, the group, or the tensor of the rank.
    int64_t place;
    /// The micro-batch of an input and a loss; of the others how many of this
    /// kind and place were before.
    int64_t number;
    /// Behind which task it was: "F0.2"; empty before the first.
    std::string task;
    uint64_t hash;
  };

  StepDigest() = default;
  explicit StepDigest(std::vector<Entry> entries) : all(std::move(entries)) {}

  void beginTask(const char *kind, int64_t stage, int64_t microBatch);
  void add(Kind kind, int64_t place, const void *data, int64_t bytes);
  void add(Kind kind, int64_t place, int64_t number, const void *data,
           int64_t bytes);
  /// The number of the next one of this kind and place, which takes it.
  int64_t next(Kind kind, int64_t place) { return counts[{kind, place}]++; }

  // What is posted is there when the wait for it is over.
  void post(Kind kind, int64_t place, Buffer buffer) {
    posted[{kind, place}].push_back(buffer);
  }
  Buffer takePosted(Kind kind, int64_t place);

  const std::vector<Entry> &entries() const { return all; }

private:
  std::string task;
  std::vector<Entry> all;
  std::map<std::pair<Kind, int64_t>, int64_t> counts;
  std::map<std::pair<Kind, int64_t>, std::deque<Buffer>> posted;
};

/// Where the second of two runs of a step first differs from the first one;
/// what one of them has not is a difference, too.
std::optional<StepDigest::Entry> firstDifference(const StepDigest &first,
                                                 const StepDigest &second);

/// The first message to each peer that differs: its number on the link.
std::map<int64_t, int64_t> differingSends(const StepDigest &first,
                                          const StepDigest &second);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_RANK_STEPDIGEST_H
