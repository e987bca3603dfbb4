//===- Scenarios.h - What every transport must do --------------*- C++ -*-===//
//
// Each scenario is one function that all ranks run at the same time over
// their own transport; it throws where the transport breaks its contract.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H

#include "runtime/net/Transport.h"

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

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_SCENARIOS_H
