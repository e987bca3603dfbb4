//===- TcpRanks.h - Ranks that meet over the loopback -----------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_TCPRANKS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_TCPRANKS_H

#include "runtime/net/TcpTransport.h"
#include "test/conformance/FreePort.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipewright::runtime {

using Body = std::function<void(Transport &)>;

/// What the rank's body threw; "" when it ended well.
std::string runRank(const TcpJob &place, double seconds, const Body &body);

/// The same of several, each a thread.
std::vector<std::string> runPlaces(const std::vector<TcpJob> &places,
                                   double seconds, const Body &body);

/// All ranks of a run on this machine.
std::vector<TcpJob> placesOf(int64_t ranks);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_TCPRANKS_H
