//===- Rounds.cpp - What can be connected at the same time ----------------===//

#include "runtime/cuda/Rounds.h"

#include <algorithm>
#include <map>
#include <set>

using namespace pipewright::runtime;

std::vector<int64_t> pipewright::runtime::assignRounds(
    const std::vector<std::vector<int64_t>> &groups) {
  std::vector<int64_t> rounds;
  /// By rank.
  std::map<int64_t, std::set<int64_t>> taken;
  for (const std::vector<int64_t> &ranks : groups) {
    auto isTaken = [&](int64_t round) {
      return std::any_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
        return taken[rank].count(round) > 0;
      });
    };
    int64_t round = 0;
    while (isTaken(round))
      ++round;
    for (const int64_t rank : ranks)
      taken[rank].insert(round);
    rounds.push_back(round);
  }
  return rounds;
}
