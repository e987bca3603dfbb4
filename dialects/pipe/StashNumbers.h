//===- StashNumbers.h - The ranges that tasks keep --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_STASHNUMBERS_H
#define PIPEWRIGHT_DIALECTS_PIPE_STASHNUMBERS_H

#include <cstdint>

namespace pipewright::pipe {

/// The index of a buffer in space `stash`: the forward's stash, the handover of
/// the input gradient, what is recomputed, and of the stash and of this what
/// the weight gradient reads, where a stage splits them.
constexpr int64_t kForwardStash = 0, kHandover = 1, kRecomputed = 2,
                  kWeightStash = 3, kWeightRecomputed = 4, kStashes = 5;

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_DIALECTS_PIPE_STASHNUMBERS_H
