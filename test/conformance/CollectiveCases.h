//===- CollectiveCases.h - Collectives and their results --------*- C++ -*-===//
//
// Numbers that every member can compute for all others, and the plain loop
// that says what each member has in the end.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_COLLECTIVECASES_H
#define PIPEWRIGHT_TEST_CONFORMANCE_COLLECTIVECASES_H

#include "runtime/net/Collectives.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// Which numbers members begin with.
enum class Numbers {
  /// Of very different sizes: another order of a sum has other bits.
  Rough,
  /// Small integers: any order has the same bits, also in bf16.
  Small
};

/// All kinds and types, with even, uneven and empty parts.
std::vector<Collective> collectiveCases(int64_t members);

/// The bytes of a member's range before the collective, and after it; `salt`
/// makes them differ from case to case.
std::string rangeBefore(const Collective &collective, int64_t member,
                        uint64_t salt, Numbers numbers);
std::string rangeAfter(const Collective &collective, int64_t member,
                       uint64_t salt, Numbers numbers);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_COLLECTIVECASES_H
