//===- Gather.h - What ranks tell each other -------------------*- C++ -*-===//
//
// Every rank calls these functions, at the same place, with its own part.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_GATHER_H
#define PIPEWRIGHT_RUNTIME_NET_GATHER_H

#include "runtime/net/Transport.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// All rows, by rank, on every rank; they are equally long.
std::vector<std::vector<double>> gatherNumbers(Transport &transport,
                                               const std::vector<double> &row);

/// All numbers, by rank, on every rank.
std::vector<uint64_t> gatherToAll(Transport &transport, uint64_t number);

/// All texts, by rank, on rank 0; nothing elsewhere.
std::vector<std::string> gatherTexts(Transport &transport,
                                     const std::string &text);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_GATHER_H
