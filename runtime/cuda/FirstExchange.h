//===- FirstExchange.h - The first use of links by copies ------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_FIRSTEXCHANGE_H
#define PIPEWRIGHT_RUNTIME_CUDA_FIRSTEXCHANGE_H

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceLinks.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// Memory of the GPU for the exchange over a number of links.
int64_t firstExchangeBytes(size_t links);

/// Sends an element over each of the links (from, to) of rank `self`: finds out
/// now what would fail in the first step. All ranks do. Throws an Error when
/// wrong bytes come, or none within `deadline` seconds. `memory` is one that
/// the links may use.
void exchangeFirst(DeviceLinks &links, int64_t self,
                   const std::vector<std::pair<int64_t, int64_t>> &own,
                   CUdeviceptr memory, double deadline);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_FIRSTEXCHANGE_H
