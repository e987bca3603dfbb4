//===- TcpRendezvous.h - Ranks find each other over TCP --------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPRENDEZVOUS_H
#define PIPEWRIGHT_RUNTIME_NET_TCPRENDEZVOUS_H

#include "runtime/net/Socket.h"
#include "runtime/net/TcpTransport.h"

#include <vector>

namespace pipewright::runtime {

/// One connection to each other rank, by rank; the rank's own is empty. All
/// ranks throw an Error if one of them does not come within the deadline.
std::vector<Socket> meet(const TcpJob &place, double deadlineSeconds);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_TCPRENDEZVOUS_H
