//===- TcpTransport.h - Ranks as processes that meet over TCP --*- C++ -*-===//
//
// For processes without MPI. Every pair of ranks has one connection. A receive
// announces itself to its sender, which answers with the bytes, or with its
// own size if that is another one: so nothing is buffered, and both ends see
// sizes that differ. Progress is made inside of waits and of poll.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPTRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_TCPTRANSPORT_H

#include "runtime/net/TcpHandshake.h"
#include "runtime/net/Transport.h"

#include <memory>
#include <string>
#include <string_view>

namespace pipewright::runtime {

/// Where the ranks of a program meet, in torchrun's words.
struct TcpJob {
  /// RANK, WORLD_SIZE.
  int64_t rank = 0;
  int64_t size = 1;
  /// MASTER_ADDR, MASTER_PORT: where rank 0 listens.
  std::string host = "127.0.0.1";
  int port = 0;
  /// What keeps strangers out.
  tcp::JobKey key;

  /// `program` is whatever only copies of the same program have in common.
  /// Throws an Error that names the variable that is missing or wrong.
  static TcpJob fromEnvironment(std::string_view program = "");
};

/// Meets all other ranks. Throws an Error if one of them does not come within
/// the deadline, or thinks that there are more or fewer ranks.
///
/// Its abort tells all others and returns: their next wait or poll throws
/// Aborted with the message. A process that dies without a word is noticed as
/// its connections close; then waits and polls throw an Error that names it.
std::unique_ptr<Transport> createTcpTransport(const TcpJob &place,
                                              double deadlineSeconds = 300);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_TCPTRANSPORT_H
