//===- StepTraffic.h - What the ranks of a step send ------------*- C++ -*-===//
//
// Counts the messages of planned rank programs: transfers, and those that
// collectives consist of where members exchange their parts directly.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_STEPTRAFFIC_H
#define PIPEWRIGHT_PASSES_STEP_STEPTRAFFIC_H

#include "dialects/pipe/PipeDialect.h"
#include "runtime/core/Traffic.h"

namespace pipewright::pipe {

/// Of all ranks of all replicas in a training step. Norms of gradients are not
/// counted.
runtime::Traffic trafficOf(mlir::ModuleOp allocated);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_STEPTRAFFIC_H
