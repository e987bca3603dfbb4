//===- LinkProbes.h - What links between ranks carry -----------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_LINKPROBES_H
#define PIPEWRIGHT_RUNTIME_TRAIN_LINKPROBES_H

#include "runtime/net/Transport.h"
#include "runtime/train/PreflightReport.h"

#include <vector>

namespace pipewright::runtime {

/// Measures, in both directions, the links of rings: from each rank of a
/// pipeline to the next one and from the last to the first, and so between the
/// replicas of a rank. Every rank calls it; all get the same.
std::vector<MeasuredLink> measureLinks(Transport &transport, const Mesh &mesh);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_LINKPROBES_H
