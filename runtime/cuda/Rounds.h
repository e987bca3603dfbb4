//===- Rounds.h - What can be connected at the same time -------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_ROUNDS_H
#define PIPEWRIGHT_RUNTIME_CUDA_ROUNDS_H

#include <cstdint>
#include <vector>

namespace pipewright::runtime {

/// The round, from 0, in which each group of ranks meets: no rank is in two
/// groups of a round. Each group takes the first round in which all of its
/// ranks are free. A rank that goes through its groups in the order of their
/// rounds never waits longer than the rounds before take; how many there are
/// depends on how many groups a rank is in, not on how many ranks there are:
///
///   links   0>1  1>0  1>2  2>1  2>3  3>2  3>4  4>3
///   round    0    1    2    3    0    1    2    3
std::vector<int64_t>
assignRounds(const std::vector<std::vector<int64_t>> &groups);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_ROUNDS_H
