//===- Scenarios.h - What every transport must do --------------*- C++ -*-===//
//
// Each scenario is one function that all ranks run at the same time over
// their own transport; it throws where the transport breaks its contract.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H

#include "runtime/net/Transport.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace pipewright::runtime {

struct Scenario {
  const char *name;
  void (*run)(Transport &transport);
};

/// All of them; each needs at least two ranks and leaves others idle.
const std::vector<Scenario> &scenarios();

/// Those of groups and collectives; each needs four ranks or eight, so that all
/// sizes of groups are there.
const std::vector<Scenario> &collectiveScenarios();

/// For how long the scenario `slow` computes, where PIPEWRIGHT_SLOW_SECONDS
/// says: 300 tries what a run with large stages may do, against the limit that
/// programs have.
std::optional<int64_t> slowSeconds();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H
